#pragma once
// How the numbers of a tensor are spread: counts in buckets whose edges are the same for every tensor, step and rank, so that counts of
// parts of a tensor add up to those of the whole, and one pass over the numbers is enough.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// Buckets of one sign: four an octave from 2^-40 to 2^16. A bucket in the middle has what is nearer to 0, the last ones have what lies
/// beyond; NaN is counted nowhere.
inline constexpr int kLowestOctave = -40;
inline constexpr int kHighestOctave = 16;
inline constexpr int kBucketsAnOctave = 4;
inline constexpr int kBucketsASign = (kHighestOctave - kLowestOctave) * kBucketsAnOctave;
inline constexpr int kBuckets = 2 * kBucketsASign + 1;

struct Histogram {
  std::string name;  // "weights/layers.0.attention.q_proj.weight", "gradients/..."
  double min = 0;
  double max = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> counts;  // kBuckets of them
};

struct Histograms {
  std::int64_t step = 0;
  std::vector<Histogram> all;
};

/// Where bucket `index` begins; of kBuckets, where the last one ends.
double bucket_edge(std::size_t index);

/// The buckets between the first and the last that hold something: one more edge than counts. Empty where nothing is counted.
struct Bars {
  std::vector<double> edges;
  std::vector<double> counts;
};
Bars bars_of(const Histogram& histogram);

}  // namespace kf
