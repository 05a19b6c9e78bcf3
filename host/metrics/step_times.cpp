#include "metrics/step_times.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "metrics/names/names.h"

namespace kf {

std::optional<double> StepTimes::add(double seconds) {
  std::optional<double> slow;
  if (factor_ > 0 && seconds_.size() >= kLeast) {
    std::vector<double> sorted(seconds_.begin(), seconds_.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    if (seconds >= factor_ * *middle && seconds >= *middle + kSeconds) {
      slow = *middle;
    }
  }
  seconds_.push_back(seconds);
  if (seconds_.size() > kWindow) {
    seconds_.pop_front();
  }
  return slow;
}

Values StepTimes::row() const {
  if (seconds_.empty()) {
    return {};
  }
  const auto count = static_cast<double>(seconds_.size());
  const double mean = std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / count;
  const double distance =
      std::accumulate(seconds_.begin(), seconds_.end(), 0.0, [mean](double sum, double s) { return sum + std::abs(s - mean); });
  return {{row_key::step_seconds, mean},
          {row_key::step_seconds_deviation, distance / count},
          {row_key::step_seconds_max, *std::max_element(seconds_.begin(), seconds_.end())}};
}

}  // namespace kf
