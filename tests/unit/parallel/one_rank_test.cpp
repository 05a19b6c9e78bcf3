#include "parallel/one_rank.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <catch2/catch.hpp>

#include "core/error.h"
#include "formulas.h"

using namespace kf;
using Catch::Matchers::Contains;

TEST_CASE("parallel: one rank gives the formula of every call", "[parallel]") {
  OneRank group;
  test::check_calls(group);
  CHECK(group.rank() == 0);
  CHECK(group.size() == 1);
}

TEST_CASE("parallel: one rank copies nothing where a result is returned", "[parallel]") {
  OneRank group;
  const at::Tensor t = test::numbers({5, 2}, at::kFloat, 0);
  CHECK(group.gathered(t, 5).is_same(t));
  CHECK(group.scattered(t).is_same(t));
  CHECK(group.exchanged(t, group.agree({5})).is_same(t));
  CHECK_THROWS_WITH(group.gathered(t, 6), Contains("parts of rows [6] are not the rows of float32 [5, 2]"));
}

TEST_CASE("parallel: a part of one rank is one rank with its place in the world", "[parallel]") {
  OneRank group("all", 3);
  const auto part = group.part("tp", {0});
  CHECK(part->ranks() == std::vector<std::int64_t>{3});
  CHECK(part->name() == "tp");
}

TEST_CASE("parallel: what no group could carry out is refused with names and shapes", "[parallel]") {
  OneRank group("dp_shard");
  const at::Tensor t = at::ones({4, 2});
  CHECK_THROWS_WITH(group.sum(t.t()), "sum in group dp_shard: float32 [2, 4] is not contiguous");
  CHECK_THROWS_WITH(group.sum(at::Tensor()), "sum in group dp_shard: a tensor that is not defined");
  CHECK_THROWS_WITH(group.sum(at::ones({2}, at::kBool)), "sum in group dp_shard: bool has no sum; `largest` says whether any is true");
  CHECK_THROWS_WITH(group.scatter_sum(at::ones({2}, at::kBool), at::ones({2}, at::kBool)), Contains("bool has no sum"));
  CHECK_THROWS_WITH(group.broadcast(t, 1), "broadcast in group dp_shard: rank 1 of 1");
  CHECK_THROWS_WITH(group.send(t, 0), "send in group dp_shard: rank 0 is this rank itself");
  CHECK_THROWS_WITH(group.receive(t, -1), "receive in group dp_shard: rank -1 of 1");
  CHECK_THROWS_WITH(group.gather(t, at::ones({4, 3})), Contains("float32 [4, 2] and float32 [4, 3] do not have rows of one kind"));
  CHECK_THROWS_WITH(group.gather(t, t.to(at::kDouble)), Contains("do not have rows of one kind"));
  CHECK_THROWS_WITH(group.gather(at::ones({}), at::ones({})), Contains("do not have rows of one kind"));
  CHECK_THROWS_WITH(group.gather(t, at::ones({3, 2})), "gather in group dp_shard: the part is float32 [3, 2], its rows should be 4");
  CHECK_THROWS_WITH(group.gather(t, t, {2, 2}), "gather in group dp_shard: parts of rows [2, 2] for 1 ranks");
  CHECK_THROWS_WITH(group.exchange(t, t, {{4}, {3}}), Contains("received rows [3] are not the rows of float32 [4, 2]"));
  CHECK_THROWS_WITH(group.exchange(t, t, {{-4}, {4}}), Contains("sent rows [-4]"));
  CHECK_THROWS_WITH(group.part("tp", {1}), Contains("rank 0 of group dp_shard is not of its part tp"));
}
