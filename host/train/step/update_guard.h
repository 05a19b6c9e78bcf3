#pragma once
// Whether an update may be made: losses and gradients that are not finite, and spikes.

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/config.h"
#include "config/tree/node.h"

namespace kf {

/// The last `window` values of a number.
class RecentValues {
 public:
  explicit RecentValues(std::int64_t window) : window_(window) {}
  void add(double value);
  /// Whether `value` lies more than sigma * max(std, 1e-6) above the mean (population std). False until max(2, window / 2) values are
  /// there.
  bool spikes(double value, double sigma) const;
  const std::vector<double>& values() const { return values_; }
  void set(std::vector<double> values) { values_ = std::move(values); }

 private:
  std::int64_t window_;
  std::vector<double> values_;  // oldest first
};

/// Judges each update by its loss and gradient norm, and remembers what it needs for that; its memory belongs into checkpoints.
class UpdateGuard {
 public:
  struct Verdict {
    std::string skip;   // why the update must be left out; empty where it may be made
    std::string abort;  // why the run must end now; empty where it may go on
  };

  explicit UpdateGuard(const config::TrainConfig& train);

  /// Of the update after `step` completed ones. Numbers that are not finite never enter the memory; skipped spikes do, so that a new level
  /// becomes normal.
  /// `infinite`: there was an infinity, even if a NaN covers it in both numbers.
  Verdict judge(double loss, double grad_norm, std::int64_t step, bool infinite = false);

  /// Why the run must end at once for numbers that are not finite (train.on_nan, train.on_inf: either counts, whatever the other number
  /// is); empty where it may go on.
  std::string abort_of(double loss, double grad_norm, std::int64_t step, bool infinite = false) const;

  /// What it remembers, oldest first; nothing without train.skip_spikes.
  const std::vector<double>& losses() const { return losses_.values(); }
  const std::vector<double>& norms() const { return norms_.values(); }

  config::Node state() const;
  /// Throws Code::checkpoint when `state` is none of `state()`.
  void load(const config::Node& state);

  static constexpr std::int64_t kMaxBadSteps = 10;  // not finite, in a row

 private:
  std::string fault_of(double loss, double grad_norm, bool finite);

  bool spikes_;
  double sigma_;
  std::int64_t max_consecutive_;
  bool abort_on_nan_;
  bool abort_on_inf_;
  RecentValues losses_;
  RecentValues norms_;
  std::int64_t skipped_ = 0;  // in a row
  std::int64_t bad_ = 0;      // not finite, in a row
};

}  // namespace kf
