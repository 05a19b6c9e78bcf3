#pragma once
// A span of the schedule: a number of steps, or a share of the whole.

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

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

/// One duration, or a list of them; 3 and [3] are told apart.
class Durations {
 public:
  template <std::integral T>
  Durations(T steps) : items_{Duration(steps)} {}
  Durations(Duration one) : items_{one} {}  // as a value is written without brackets
  explicit Durations(std::vector<Duration> list) : items_(std::move(list)), list_(true) {}

  bool is_list() const { return list_; }
  const std::vector<Duration>& items() const { return items_; }
  /// The only one; of no list.
  Duration one() const { return items_.front(); }

  bool operator==(const Durations&) const = default;

 private:
  std::vector<Duration> items_;
  bool list_ = false;
};

}  // namespace kf::config
