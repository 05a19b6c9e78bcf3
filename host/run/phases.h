#pragma once
// From `phases`, data.phases and annealing to the phases of a run.

#include "config/schema/config.h"
#include "registry/registries.h"
#include "train/loop/phase.h"

namespace kf {

/// Registered phases are built, their keys checked as those of an entry. The phases of the data come from data_phases. Throws
/// Code::config and Code::script.
Phases make_phases(const config::Config& config, const Registries& registries, std::int64_t max_steps);

}  // namespace kf
