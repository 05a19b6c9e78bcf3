#include "report/read/thinned.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "report/read/columns.h"

using kf::report::gap;
using kf::report::thinned;

TEST_CASE("report: thinning keeps the smallest and the largest of every stretch", "[report]") {
  std::mt19937 random(7);
  std::vector<double> x, y;
  for (int i = 0; i < 10000; ++i) {
    x.push_back(i);
    y.push_back(static_cast<double>(random() % 100000));
  }
  y[5432] = 1e9;
  const std::vector<std::size_t> kept = thinned(x, y, 50);
  CHECK(kept.size() <= 102);
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(kept.front() == 0);
  CHECK(kept.back() == 9999);
  for (std::size_t bucket = 0; bucket < 50; ++bucket) {
    const auto begin = y.begin() + static_cast<std::ptrdiff_t>(bucket * 200 + (bucket == 0 ? 1 : 0));
    const auto end = y.begin() + static_cast<std::ptrdiff_t>(bucket == 49 ? 9999 : bucket * 200 + 199);
    for (const auto extreme : {std::min_element(begin, end), std::max_element(begin, end)}) {
      const double value = *extreme;
      CHECK(std::any_of(kept.begin(), kept.end(), [&](std::size_t i) { return y[i] == value; }));
    }
  }
}

TEST_CASE("report: thinning leaves out gaps and keeps what is not finite", "[report]") {
  std::vector<double> x, y;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(i);
    y.push_back(i % 2 == 0 ? gap() : 1);
  }
  y[501] = std::nan("");
  y[503] = std::numeric_limits<double>::infinity();
  const std::vector<std::size_t> kept = thinned(x, y, 10);
  CHECK(std::count(kept.begin(), kept.end(), 501) == 1);
  CHECK(std::none_of(kept.begin(), kept.end(), [&](std::size_t i) { return i % 2 == 0; }));
}

TEST_CASE("report: few points, one point and points at one place are kept as they are", "[report]") {
  CHECK(thinned(std::vector<double>{}, std::vector<double>{}, 4).empty());
  CHECK(thinned(std::vector<double>{3}, std::vector<double>{1}, 1) == std::vector<std::size_t>{0});
  CHECK(thinned(std::vector<double>{1, 2, 3}, std::vector<double>{1, gap(), 2}, 1) == std::vector<std::size_t>{0, 2});
  const std::vector<double> same(100, 5.0), rising = [] {
    std::vector<double> out;
    for (int i = 0; i < 100; ++i) {
      out.push_back(i);
    }
    return out;
  }();
  CHECK(thinned(same, rising, 3) == std::vector<std::size_t>{0, 1, 98, 99});
}
