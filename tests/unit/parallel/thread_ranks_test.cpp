#include "parallel/thread_ranks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <catch2/catch.hpp>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "formulas.h"
#include "parallel/group.h"
#include "programs.h"

using namespace kf;
using Catch::Matchers::Contains;

namespace {

// What each rank of a program says, by rank.
std::vector<std::string> said_by(const std::string& program, std::int64_t ranks) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](Group& all) { said[static_cast<std::size_t>(all.rank())] = test::run_program(program, all); });
  return said;
}

// What each rank threw of its own, and what came out in the end.
struct Ends {
  std::vector<std::string> of_ranks;
  std::string of_all;
  Code code = Code::other;
};

Ends ends_of(std::int64_t ranks, const std::function<void(Group& all)>& body) {
  Ends ends;
  ends.of_ranks.resize(static_cast<std::size_t>(ranks));
  try {
    run_ranks(ranks, [&](Group& all) {
      try {
        body(all);
      } catch (const std::exception& e) {
        ends.of_ranks[static_cast<std::size_t>(all.rank())] = e.what();
        throw;
      }
    });
  } catch (const Error& e) {
    ends.of_all = e.what();
    ends.code = e.code();
  }
  return ends;
}

Ends ends_of(std::int64_t ranks, const std::string& program) {
  return ends_of(ranks, [&](Group& all) { test::run_program(program, all); });
}

}  // namespace

TEST_CASE("thread ranks: every call gives the formula's bits on 1, 2, 3 and 4 ranks", "[parallel]") {
  const std::int64_t ranks = GENERATE(1, 2, 3, 4);
  CAPTURE(ranks);
  run_ranks(ranks, test::check_calls);
}

TEST_CASE("thread ranks: groups along axes and of halves are groups like any other", "[parallel]") {
  for (const std::int64_t ranks : {2, 4, 5}) {
    run_ranks(ranks, [](Group& all) { test::run_program("parts", all); });
    run_ranks(ranks, [](Group& all) { test::run_program("mesh", all); });
  }
}

TEST_CASE("thread ranks: a mixed program gives the same bits a hundred times", "[parallel]") {
  const std::vector<std::string> first = said_by("mixed", 3);
  CHECK(first[0].size() > 1000);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(said_by("mixed", 3) == first);
  }
}

TEST_CASE("thread ranks: an error of one rank ends the waits of all, with its name and message", "[parallel]") {
  const Ends ends = ends_of(3, "throws");
  CHECK(ends.of_all == "rank 1: the file is broken");
  CHECK(ends.code == Code::data);
  for (const std::size_t rank : {0U, 2U}) {
    CHECK(ends.of_ranks[rank] ==
          "rank 1: the file is broken\n  while rank " + std::to_string(rank) + " was in sum of float32 [3] in group all");
  }
}

TEST_CASE("thread ranks: of several errors the lowest rank's comes out", "[parallel]") {
  const Ends ends = ends_of(4, [](Group& all) {
    all.barrier();
    if (all.rank() >= 2) {
      throw std::runtime_error("no " + std::to_string(all.rank()));
    }
  });
  CHECK(ends.of_all == "rank 2: no 2");
  CHECK(ends.code == Code::other);
}

TEST_CASE("thread ranks: what is no exception of the library ends the others, too", "[parallel]") {
  const Ends ends = ends_of(2, [](Group& all) {
    if (all.rank() == 0) {
      throw 7;
    }
    all.barrier();
  });
  CHECK(ends.of_all == "rank 0: an exception that is no std::exception");
}

TEST_CASE("thread ranks: a rank that gives up ends the others", "[parallel]") {
  const Ends ends = ends_of(2, [](Group& all) {
    if (all.rank() == 0) {
      all.end("asked to stop");
    } else {
      all.barrier();
    }
  });
  CHECK(ends.of_all == "rank 0: asked to stop");
  CHECK_THAT(ends.of_ranks[1], Contains("rank 0: asked to stop"));
}

TEST_CASE("thread ranks: calls that do not match say who does what", "[parallel]") {
  CHECK(ends_of(3, "mismatched").of_all ==
        "calls in group all do not match: rank 0 calls sum of float32 [3], rank 1 calls gather of float32 [3] in parts of [1, 1, 1] rows");
  CHECK(ends_of(2, "other_lengths").of_all ==
        "calls in group all do not match: rank 0 calls sum of float32 [40000], rank 1 calls sum of float32 [50000]");
  CHECK(ends_of(2, "other_rows").of_all ==
        "calls in group all do not match: exchange of float32 rows []: rank 1 sends 3 rows to rank 0, which receives 2");
  CHECK(ends_of(2, "other_letter").of_all ==
        "calls in group all do not match: send of float32 [3] from rank 0 to rank 1, but receive of float32 [4] by rank 1 from rank 0");
  CHECK_THAT(ends_of(3, "mismatched").of_ranks[1], Contains("while rank 1 was in gather of float32 [3]"));
  const Ends ends = ends_of(2, [](Group& all) { all.broadcast(at::ones({2}), all.rank()); });
  CHECK_THAT(ends.of_all, Contains("rank 0 calls broadcast of float32 [2] from rank 0, rank 1 calls broadcast of float32 [2] from rank 1"));
  CHECK_THAT(ends.of_ranks[0], Contains("while rank 0 was in"));
  CHECK(ends.code == Code::communication);
}

TEST_CASE("thread ranks: ranks that wait for each other, or for one that has returned, are told so", "[parallel]") {
  const auto letters = [](Group& all) {
    const at::Tensor t = at::ones({2});
    all.send(t, 1 - all.rank());
    all.receive(t, 1 - all.rank());
  };
  CHECK(
      ends_of(2, letters).of_all ==
      "all ranks wait for each other: rank 0 is in send of float32 [2] from rank 0 to rank 1, rank 1 is in send of float32 [2] from rank 1 "
      "to rank 0");
  const auto leaves = [](Group& all) {
    if (all.rank() != 1) {
      all.barrier();
    }
  };
  CHECK(ends_of(3, leaves).of_all ==
        "all ranks wait for each other: rank 0 is in barrier in group all, rank 1 has returned, rank 2 is in barrier in group all");
}

TEST_CASE("thread ranks: an error comes out of a begun call's wait and out of every later call", "[parallel]") {
  const Ends ends = ends_of(2, "twice");
  CHECK_THAT(ends.of_ranks[0], Contains("twice: rank 1: the file is broken"));
}

TEST_CASE("thread ranks: a call that was begun and never waited for harms nobody", "[parallel]") {
  run_ranks(2, [](Group& all) {
    static_cast<void>(all.begin_sum(at::ones({3})));
    static_cast<void>(all.begin_send(at::ones({3}), 1 - all.rank()));
    all.barrier();
  });
}

TEST_CASE("thread ranks: nothing is seen by autograd", "[parallel]") {
  run_ranks(2, [](Group& all) {
    const at::Tensor t = at::ones({3}).requires_grad_(true);
    all.sum(t);
    const at::Tensor whole = all.gathered(t, 6);
    all.broadcast(t, 0);
    if (whole.requires_grad() || !t.is_leaf() || t.grad_fn() != nullptr) {
      throw std::runtime_error("seen");
    }
  });
}
