#include "metrics/histogram.h"

#include <algorithm>
#include <cmath>

namespace kf {

double bucket_edge(std::size_t index) {
  const int middle = kBucketsASign;
  const int i = static_cast<int>(index);
  const int place = i <= middle ? middle - i : i - middle - 1;  // how many buckets away from the middle one's own edge
  const double edge = std::exp2(kLowestOctave + static_cast<double>(place) / kBucketsAnOctave);
  return i <= middle ? -edge : edge;
}

Bars bars_of(const Histogram& histogram) {
  const auto holds = [](double count) { return count > 0; };
  const auto first = std::find_if(histogram.counts.begin(), histogram.counts.end(), holds);
  Bars out;
  if (first == histogram.counts.end()) {
    return out;
  }
  const auto end = std::find_if(histogram.counts.rbegin(), histogram.counts.rend(), holds).base();
  out.counts.assign(first, end);
  const auto begin = static_cast<std::size_t>(first - histogram.counts.begin());
  for (std::size_t i = 0; i <= out.counts.size(); ++i) {
    out.edges.push_back(bucket_edge(begin + i));
  }
  return out;
}

}  // namespace kf
