#pragma once
// Where the cycles of the learning rate begin.

#include <cstdint>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// First steps of the cycles of a schedule of `total` steps, the first of them 0, all below `total`: the multiples of total / cycles, or of
/// cycle_length; the starts that a list of cycles gives; or the sums of a list of cycle_length. Out-of-order starts are left as they are:
/// the rules of the job refuse them.
std::vector<std::int64_t> cycle_starts(const SchedulerConfig& scheduler, std::int64_t total);

/// Where cycles of these lengths end, one after the other from step 0: steps and shares of `total`.
std::vector<std::int64_t> cycle_ends(const std::vector<Duration>& lengths, std::int64_t total);

/// Whether scheduler.cycles, or scheduler.cycle_length, has another value than its default.
bool gives_cycles(const SchedulerConfig& scheduler);
bool gives_cycle_length(const SchedulerConfig& scheduler);

}  // namespace kf::config
