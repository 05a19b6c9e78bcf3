#pragma once
// How long steps take, and which of them stand out.

#include <cstddef>
#include <deque>
#include <optional>

#include "metrics/sink.h"

namespace kf {

/// The steps of a moving window.
class StepTimes {
 public:
  static constexpr std::size_t kWindow = 64;
  static constexpr std::size_t kLeast = 8;  // before fewer are known no step stands out: the first ones warm up
  static constexpr double kSeconds = 1;     // no step stands out by less

  /// `factor` as metrics.slow_step_factor; 0: none stands out.
  explicit StepTimes(double factor) : factor_(factor) {}

  /// A step's seconds. The median of those before it, where it took `factor` times that and kSeconds more.
  std::optional<double> add(double seconds);

  /// Of the window: step_seconds (mean), step_seconds_deviation (mean distance from it) and step_seconds_max.
  Values row() const;

 private:
  double factor_;
  std::deque<double> seconds_;
};

}  // namespace kf
