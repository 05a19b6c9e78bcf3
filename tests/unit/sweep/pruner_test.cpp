#include <cmath>

#include "sweep/pruner.h"

#include <catch2/catch.hpp>

using namespace kf::sweep;

namespace {

using Rungs = std::vector<std::vector<double>>;

AshaVerdict ask(const Rungs& others, std::int64_t step, double value, bool maximise = false, std::int64_t rungs = 0) {
  return asha({1, 4}, maximise, rungs, step, value, [&](std::int64_t rung) {
    return static_cast<std::size_t>(rung) < others.size() ? others[static_cast<std::size_t>(rung)] : std::vector<double>();
  });
}

}  // namespace

TEST_CASE("sweep: of eight at a rung the best two go on", "[sweep]") {
  const Rungs seven{{1, 2, 3, 4, 5, 6, 7}};
  CHECK_FALSE(ask(seven, 1, 0.5).prune);
  CHECK_FALSE(ask(seven, 1, 1.5).prune);
  CHECK(ask(seven, 1, 2.5).prune);
  CHECK_FALSE(ask(seven, 1, 6.5, true).prune);
  CHECK(ask(seven, 1, 5.5, true).prune);
}

TEST_CASE("sweep: the first trials go on while they are the best", "[sweep]") {
  CHECK_FALSE(ask({}, 1, 5).prune);
  CHECK_FALSE(ask({{5}}, 1, 4).prune);
  CHECK(ask({{5}}, 1, 6).prune);
}

TEST_CASE("sweep: between rungs nothing is asked; a late report answers for all it passed", "[sweep]") {
  const AshaVerdict early = ask({{1}}, 3, 9, false, 1);  // the next rung is at 4
  CHECK_FALSE(early.prune);
  CHECK(early.rungs == 1);
  const AshaVerdict late = ask({}, 20, 9);
  CHECK_FALSE(late.prune);
  CHECK(late.rungs == 3);  // 1, 4, 16
  CHECK(ask({{}, {}, {1, 2}}, 20, 9).prune);
}

TEST_CASE("sweep: what is not a number is cut at a rung", "[sweep]") { CHECK(ask({}, 1, std::nan("")).prune); }
