#pragma once
// Learning-rate schedules: a factor of optimizer.lr for each step. A function of the step alone, so a resumed run needs no state.

#include <cstdint>

namespace kf {

struct Schedule {
  virtual ~Schedule() = default;
  /// The factor that multiplies optimizer.lr in the update after `step` completed ones (0 for the first).
  virtual double factor(std::int64_t step) const = 0;
};

}  // namespace kf
