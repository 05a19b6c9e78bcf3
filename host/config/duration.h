#pragma once
// A span of the schedule: a number of steps, or a share of the whole.

#include <concepts>
#include <cstdint>

namespace kf::config {

/// In TOML an integer is steps and a float in (0, 1] a share: 1 is one step, 1.0 the whole schedule.
class Duration {
 public:
  Duration() = default;
  template <std::integral T>
  Duration(T steps) : steps_(static_cast<std::int64_t>(steps)) {}  // a plain number of steps is a duration
  static Duration of_share(double share) {
    Duration out;
    out.share_ = share;
    return out;
  }

  bool is_share() const { return share_ > 0; }
  double share() const { return share_; }        // 0 where it is steps
  std::int64_t steps() const { return steps_; }  // 0 where it is a share
  /// Steps of a schedule of `total` steps; a share is rounded down.
  std::int64_t of(std::int64_t total) const;

  bool operator==(const Duration&) const = default;

 private:
  std::int64_t steps_ = 0;
  double share_ = 0;
};

}  // namespace kf::config
