#pragma once
// From `phases`, data.phases and annealing to the phases of a run.

#include "config/schema/config.h"
#include "registry/registries.h"
#include "train/loop/phase.h"

namespace kf {

/// Registered phases are made; what the factory of one gives is checked here, as an entry of `phases` is when a job is loaded. The phases
/// of the data come from data_phases. Throws Code::config and Code::script.
Phases make_phases(const config::Config& config, const Registries& registries, std::int64_t max_steps);

}  // namespace kf
