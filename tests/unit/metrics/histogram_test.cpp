#include "metrics/histogram.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace kf;

TEST_CASE("histogram: edges rise, and mirror each other around a bucket for what is nearest to 0", "[trackers]") {
  for (std::size_t i = 0; i < kBuckets; ++i) {
    CHECK(bucket_edge(i) < bucket_edge(i + 1));
    CHECK(bucket_edge(i) == -bucket_edge(kBuckets - i));
  }
  CHECK(bucket_edge(kBuckets) == std::exp2(kHighestOctave));
  CHECK(bucket_edge(kBucketsASign + 1) == std::exp2(kLowestOctave));
}

TEST_CASE("histogram: bars are what lies between the first and the last count", "[trackers]") {
  Histogram histogram;
  histogram.counts.assign(kBuckets, 0);
  CHECK(bars_of(histogram).edges.empty());
  histogram.counts[10] = 3;
  histogram.counts[13] = 1;
  const Bars bars = bars_of(histogram);
  CHECK(bars.counts == std::vector<double>{3, 0, 0, 1});
  REQUIRE(bars.edges.size() == 5);
  CHECK(bars.edges.front() == bucket_edge(10));
  CHECK(bars.edges.back() == bucket_edge(14));
}
