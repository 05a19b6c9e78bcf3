// Orders by arithmetic: bijections at any size, different in every epoch, without a visible pattern, local where they promise it.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/feistel.h"
#include "data/order/index_order.h"

#include <catch2/catch.hpp>

namespace {

using Ids = std::vector<std::int64_t>;

Ids epoch_of(const kf::IndexOrder& order, std::int64_t epoch) {
  Ids out;
  for (std::int64_t place = 0; place < order.size(); ++place) {
    out.push_back(order.at(epoch, place));
  }
  return out;
}

bool is_permutation_of_all(Ids ids) {
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != static_cast<std::int64_t>(i)) {
      return false;
    }
  }
  return true;
}

/// Chi-square of counts against equal expectations, in standard deviations of its distribution.
double surprise(const std::vector<double>& counts, double expected) {
  double chi2 = 0;
  for (const double count : counts) {
    chi2 += (count - expected) * (count - expected) / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (chi2 - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST_CASE("order: every kind visits each sample once, at odd sizes too") {
  for (const char* kind : {"none", "permutation", "block", "window"}) {
    for (const std::int64_t size : {1, 2, 3, 5, 7, 8, 9, 64, 65, 997, 4097}) {
      for (const std::int64_t window : {2, 3, 64, 1000, 100000}) {
        CAPTURE(kind, size, window);
        const auto order = kf::make_index_order(kind, size, 7, window);
        CHECK(is_permutation_of_all(epoch_of(*order, 0)));
        CHECK(is_permutation_of_all(epoch_of(*order, 3)));
      }
    }
  }
}

TEST_CASE("order: epochs and seeds differ, and the same ones agree") {
  for (const char* kind : {"permutation", "block", "window"}) {
    CAPTURE(kind);
    std::set<Ids> seen;
    for (std::int64_t seed = 0; seed < 4; ++seed) {
      const auto order = kf::make_index_order(kind, 500, seed, 50);
      for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
        seen.insert(epoch_of(*order, epoch));
        CHECK(epoch_of(*order, epoch) == epoch_of(*kf::make_index_order(kind, 500, seed, 50), epoch));
      }
    }
    CHECK(seen.size() == 16);
  }
}

TEST_CASE("order: a permutation of a million million samples needs no memory, and each place goes back to itself alone") {
  const std::int64_t size = 1'000'000'000'001;
  const auto order = kf::make_index_order("permutation", size, 1, 2);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    const std::int64_t sample = order->at(5, size - 1 - i * 49'999'999);
    REQUIRE((sample >= 0 && sample < size));
    seen.insert(sample);
  }
  CHECK(seen.size() == 20'000);
}

TEST_CASE("order: where a sample comes is uniform, for few samples and for many") {
  for (const std::int64_t size : {2, 5, 10, 64, 100}) {
    std::vector<double> counts(static_cast<std::size_t>(size * size));
    const int keys = 20'000;
    for (int key = 0; key < keys; ++key) {
      const kf::Feistel permutation(size, kf::mix_keys(11, static_cast<std::uint64_t>(key)));
      for (std::int64_t place = 0; place < size; ++place) {
        ++counts[static_cast<std::size_t>(place * size + permutation.at(place))];
      }
    }
    CAPTURE(size);
    CHECK(surprise(counts, keys / static_cast<double>(size)) < 6);
  }
}

TEST_CASE("order: all permutations of five samples are about equally frequent") {
  std::map<Ids, double> counts;
  const int keys = 60'000;
  for (int key = 0; key < keys; ++key) {
    const kf::Feistel permutation(5, kf::mix_keys(3, static_cast<std::uint64_t>(key)));
    Ids all;
    for (std::int64_t place = 0; place < 5; ++place) {
      all.push_back(permutation.at(place));
    }
    ++counts[all];
  }
  REQUIRE(counts.size() == 120);
  for (const auto& [ids, count] : counts) {
    CHECK(count == Approx(keys / 120.0).epsilon(0.2));
  }
}

TEST_CASE("order: neighbours are no neighbours after a permutation") {
  const auto order = kf::make_index_order("permutation", 100'000, 4, 2);
  const Ids ids = epoch_of(*order, 0);
  double sum = 0;
  int near = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    const double x = static_cast<double>(ids[i - 1]) / 1e5 - 0.5;
    const double y = static_cast<double>(ids[i]) / 1e5 - 0.5;
    sum += 12 * x * y;
    near += std::abs(ids[i] - ids[i - 1]) <= 10 ? 1 : 0;
  }
  CHECK(std::abs(sum / 1e5) < 5 / std::sqrt(1e5));  // serial correlation
  CHECK(near < 50);                                 // 20 are expected
}

TEST_CASE("order: blocks stay together, in another order in every epoch, and the short one is not always the last") {
  const auto order = kf::make_index_order("block", 1007, 4, 100);
  std::set<std::size_t> places_of_short;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    const Ids ids = epoch_of(*order, epoch);
    std::vector<std::int64_t> runs;
    for (const std::int64_t id : ids) {
      if (runs.empty() || runs.back() != id / 100) {
        runs.push_back(id / 100);
      }
    }
    REQUIRE(runs.size() == 11);  // each block in one run
    places_of_short.insert(static_cast<std::size_t>(std::find(runs.begin(), runs.end(), 10) - runs.begin()));
  }
  CHECK(places_of_short.size() > 5);
}

TEST_CASE("order: in a window no sample moves as far as the window, and most move") {
  for (const std::int64_t window : {2, 10, 101, 1000}) {
    const auto order = kf::make_index_order("window", 5003, 9, window);
    std::int64_t farthest = 0;
    const Ids ids = epoch_of(*order, 1);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      farthest = std::max(farthest, std::abs(ids[i] - static_cast<std::int64_t>(i)));
    }
    CAPTURE(window);
    CHECK(farthest < window);
    CHECK((window < 10 || farthest > window / 2));
  }
}

TEST_CASE("order: an unknown kind and an empty data set are refused") {
  CHECK_THROWS_WITH(kf::make_index_order("torch", 5, 0, 2), Catch::Contains("'torch'") && Catch::Contains("permutation"));
  CHECK_THROWS_WITH(kf::make_index_order("none", 0, 0, 2), Catch::Contains("0 samples"));
}
