#pragma once
// How far weights moved between two checkpoints.

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/weights_at.h"

namespace kf {

/// One weight that both have, b - a, in fp64. Where both have NaN, or the same infinity, nothing has moved.
struct WeightMove {
  std::string name;
  Shape shape;
  double largest = 0;   // of |b - a|; NaN where one has a number and the other has NaN
  double norm = 0;      // |b - a|
  double relative = 0;  // |b - a| / |a|; infinite where a is 0 and b is not
};

/// A weight with NaN in it.
struct WeightNans {
  std::string name;
  std::int64_t in_a = 0, in_b = 0;  // elements
};

struct WeightDifference {
  std::vector<std::string> only_a, only_b;
  std::vector<std::string> misshapen;  // "NAME is (2, 3) in A and (3, 3) in B"
  std::vector<WeightMove> moved;       // by `relative`, the farthest first
  std::vector<WeightNans> nans;        // by name, whether equal or not
  std::int64_t equal = 0;              // tensors
  double norm = 0, relative = 0;       // over all numbers that both have

  bool same() const { return only_a.empty() && only_b.empty() && misshapen.empty() && moved.empty(); }
};

/// One tensor of each is held at a time.
WeightDifference difference(const NamedTensors& a, const NamedTensors& b);

}  // namespace kf
