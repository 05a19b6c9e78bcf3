#pragma once
// Tokens a second since the last row, and what share of the machine's peak that is.

#include <cstdint>
#include <functional>

namespace kf {

/// Seconds since some moment.
using Clock = std::function<double()>;
/// The steady clock.
Clock steady_clock();

struct Rate {
  double tokens_per_sec = 0;
  double mfu = 0;  // 0 where the peak is unknown
};

class Throughput {
 public:
  /// `flops_per_token` from config/plan/derived.h (forward and backward), `peak_flops` of all devices of the run together.
  Throughput(double flops_per_token, double peak_flops, Clock clock = steady_clock());

  /// Call after every step with its tokens, once the device is done with it (a metric that was read).
  void add(std::int64_t tokens) { tokens_ += tokens; }
  /// Around evaluations and saves, whose time is not training.
  void pause();
  void resume();
  /// The rate since the last `take` (since construction).
  Rate rate() const;
  /// The same, and a new window.
  Rate take();
  /// The same as of an earlier moment, in `seconds`.
  Rate take_at(double seconds);
  /// Seconds since construction, pauses included.
  double seconds() const { return clock_() - begin_; }

 private:
  Rate rate_at(double now) const;

  double flops_per_token_;
  double peak_flops_;
  Clock clock_;
  double begin_;
  double window_begin_;
  double paused_at_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace kf
