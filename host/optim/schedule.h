#pragma once
// Learning-rate schedules: a factor of optimizer.lr for each step. A function of the step alone, so a resumed run needs no state.

#include <cstdint>

namespace kf {

/// What a schedule is made for.
struct ScheduleSpan {
  std::int64_t max_steps = 0;   // its length, in updates
  std::int64_t data_ranks = 1;  // that read different data: an update has so many times the sequences of one
};

struct Schedule {
  virtual ~Schedule() = default;
  /// The factor that multiplies optimizer.lr in the update after `step` completed ones (0 for the first).
  virtual double factor(std::int64_t step) const = 0;
};

}  // namespace kf
