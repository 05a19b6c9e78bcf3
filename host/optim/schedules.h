#pragma once
// The native schedules. s is the number of completed updates, W the warm-up, D the length of the decay, m the floor.

#include <cstdint>
#include <memory>

#include "config/schema/config.h"
#include "optim/schedule.h"

namespace kf {

/// What the power schedule needs to know besides: its rate is an absolute one.
struct PowerScale {
  double peak = 1;       // optimizer.lr
  double sequences = 1;  // B, of an update
  double seq_len = 1;    // S
};

/// Warm-up s/W, then the shape of `name` over p = min(1, t / D), where t = s - W - stable:
///   cosine, linear, wsd, rex   see docs/config.md
///   inv_sqrt   1 / sqrt(max(t + W, 1) / inv_sqrt_timescale), at most 1, at least m
///   inv        1 / ((1/m - 1) max(t, 1) / D + 1), at least m
///   power      B power_a (t B S)^power_b / peak, at most 1 (Shen et al. 2024, "Power Scheduler"); m does not apply
/// `none` has no warm-up. With scheduler.endpoints = "inclusive" the factor of step s is that of s + 1: the first update moves, the last is
/// at the floor. Shares are of the schedule, max_steps or scheduler.total_steps. With cycles the schedule starts again after each of them:
/// shares are of the cycle, and rewarmup_steps lead from the end of the one before to the peak.
std::unique_ptr<Schedule> make_native_schedule(const std::string& name, const config::SchedulerConfig& config, std::int64_t max_steps,
                                               const PowerScale& power = {});

/// `inner` as it is, where scheduler.total_steps is unset; otherwise past total_steps its value there, or 0 (scheduler.after).
std::unique_ptr<Schedule> ending(std::unique_ptr<Schedule> inner, const config::SchedulerConfig& config);

}  // namespace kf
