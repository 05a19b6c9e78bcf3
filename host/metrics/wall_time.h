#pragma once
// metrics.goodput: where the wall time of a run goes, over all its parts.

#include <array>
#include <cstddef>
#include <functional>

#include "config/tree/node.h"
#include "metrics/sink.h"

namespace kf {

/// Seconds by cause. `step` is what updates took that still count: not those that were skipped, rolled back, or done again after a crash.
class WallTime {
 public:
  enum class Cause { start, data, step, skipped, eval, save };
  using UnixClock = std::function<double()>;  // seconds since 1970
  static UnixClock system_clock();

  /// A part of the run that began now, or at `began`.
  explicit WallTime(UnixClock clock = system_clock(), double began = 0);

  /// All until now was the start of this part.
  void started();
  void add(Cause cause, double seconds) { spent_[static_cast<std::size_t>(cause)] += seconds; }

  /// goodput = the share of the time since the run began for the first time; time/start, time/data, time/skipped, time/eval, time/save,
  /// time/lost (between the checkpoint that a part goes on from and its start, and rolled back) and time/other in seconds.
  Values row() const;

  /// For checkpoints.
  config::Node state() const;
  /// Goes on from a checkpoint; null where it has none: of an earlier version, or without metrics.goodput. Throws Code::checkpoint.
  void load(const config::Node& state);
  /// Back to a checkpoint: the updates since then are lost.
  void roll_back(const config::Node& state);

 private:
  double& of(Cause cause) { return spent_[static_cast<std::size_t>(cause)]; }

  UnixClock clock_;
  double part_began_;
  double began_;
  double lost_ = 0;
  std::array<double, 6> spent_{};  // by cause
};

}  // namespace kf
