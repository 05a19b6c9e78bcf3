#pragma once
// The native schedules. s is the number of completed updates, W the warm-up, D the length of the decay, m the floor.

#include <cstdint>
#include <memory>

#include "config/config.h"
#include "optim/schedule.h"

namespace kf {

/// Warm-up s/W, then the shape of `config.name` over p = min(1, (s - W - stable) / D); see docs/config.md for the shapes.
/// `none` has no warm-up. With scheduler.endpoints = "inclusive" the factor of step s is that of s + 1: the first update moves, the last is
/// at the floor. `name` is one of constant, cosine, linear, none, rex, wsd.
std::unique_ptr<Schedule> make_native_schedule(const std::string& name, const config::SchedulerConfig& config, std::int64_t max_steps);

}  // namespace kf
