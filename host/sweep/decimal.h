#pragma once
// Steps between bounds in decimal arithmetic: 0.1, 0.1 and 0.3 mean what they say, not their nearest binary fractions.

#include <cstdint>

namespace kf::sweep {

/// What fits between two bounds.
struct Steps {
  std::int64_t count = 0;  // floor((high - low) / step)
  double high = 0;         // low + count step: the given bound where it is met exactly
};

/// Every number as its shortest decimal, as Optuna does it (_adjust_discrete_uniform_high). Numbers that are too far apart for 38 digits
/// are divided as they are, the result never above `high`. `low` <= `high`, `step` > 0.
Steps steps_between(double low, double high, double step);

}  // namespace kf::sweep
