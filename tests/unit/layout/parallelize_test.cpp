#include "layout/parallelize.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "core/error.h"
#include "model/weight_unit.h"
#include "parallel/thread_ranks.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// On the threads of ranks: Catch2 counts on one thread alone.
void must(bool holds, const char* what, const Parameter& weight) { KF_CHECK(holds, Code::other, "{} of {}", what, weight.name); }

bool read_whole(Model& model) {
  try {
    logits_of(model, random_tokens(1, 8, 3));
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("placement: a range is a view, ranges overlap, cuts follow each other", "[placement]") {
  const at::Tensor whole = at::arange(24).view({6, 4});
  Placement placement;
  placement.cuts = {{Axis::tp, 1, {3, 1}, 1}, {Axis::dp_shard, 0, {0, 4, 2}, 1}};
  const Range range = placement.of({6, 4});
  CHECK(range == Range{{0, 3}, {4, 1}});
  CHECK(range.of(whole).equal(whole.narrow(0, 0, 4).narrow(1, 3, 1)));
  CHECK(Range{{1, 1}, {4, 2}}.overlap(range) == std::nullopt);
  CHECK(Range{{1, 1}, {4, 3}}.overlap(range) == Range{{1, 3}, {3, 1}});
  CHECK(Range{{1, 3}, {3, 1}}.within(Range{{1, 1}, {4, 3}}) == Range{{0, 2}, {3, 1}});
  CHECK(Placement().of({2, 3}).covers({2, 3}));
  CHECK_THROWS_WITH(placement.of({7, 4}), Catch::Contains("7"));
}

TEST_CASE("parallelize: each row of a weight that trains lies on one rank, what the optimizer needs whole on one", "[parallelize]") {
  config::Config c = tiny_config();
  c.optimizer.name = "muon";
  c.train.frozen = {"layers.0.attention.*"};
  c.distributed.zero_stage = 1;
  std::vector<std::int64_t> held(3, 0), trained(3, 0);
  run_ranks(3, [&](Group& all) {
    const World world(all, Mesh({1, 1, 3, 1, 1, 1}));
    const Bench bench(c, at::kFloat, world);
    for (const ParameterPtr& weight : bench.model->parameters()) {
      if (!weight->trainable) {
        must(weight->placement.whole(), "frozen", *weight);
        continue;
      }
      const Shape& rows = weight->placement.cuts.at(0).sizes;
      must(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == weight->shape[0], "all rows", *weight);
      const bool whole = bench.optimizer->needs(*weight) == Optimizer::Needs::whole;
      must(std::count(rows.begin(), rows.end(), 0) == (whole ? 2 : 0), "owners", *weight);
      must(weight->master.sizes() == at::IntArrayRef(weight->placement.of(weight->shape).size), "master", *weight);
      held[static_cast<std::size_t>(all.rank())] += weight->part_numel();
      trained[static_cast<std::size_t>(all.rank())] += weight->numel();
    }
  });
  CHECK(held[0] + held[1] + held[2] == trained[0]);
  for (const std::int64_t part : held) {  // within the largest weight of the mean
    CHECK(std::abs(part - trained[0] / 3) <= kTinyVocab * 32);
  }
}

TEST_CASE("parallelize: between steps of stage 3 a rank holds its parts alone, and reading a whole weight is an error", "[parallelize]") {
  config::Config c = tiny_config();
  std::atomic<int> refused = 0;
  run_ranks(2, [&](Group& all) {
    const World world(all, Mesh({1, 1, 2, 1, 1, 1}));
    Bench bench(c, at::kFloat, world);
    FixedLoader data(random_tokens(2, 32, 1), random_tokens(2, 32, 2), 2);
    const auto check_rest = [&] {
      for (const ParameterPtr& weight : bench.model->parameters()) {
        must(weight->value.numel() == 0, "value", *weight);
        must(weight->master.numel() == weight->part_numel(), "master", *weight);
        must(weight->master.storage().nbytes() == 4 * static_cast<std::size_t>(weight->part_numel()), "memory", *weight);
      }
    };
    check_rest();
    bench.step(data, 0, 1e-3);
    check_rest();
    {
      const WholeWeights whole(*bench.model);
      KF_CHECK(logits_of(*bench.model, random_tokens(1, 8, 3)).isfinite().all().item<bool>(), Code::other, "logits");
    }
    check_rest();
    refused += read_whole(*bench.model) ? 0 : 1;
  });
  CHECK(refused == 2);
}
