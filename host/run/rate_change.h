#pragma once
// What a changed job does to the learning rate where a run goes on.

#include <cstdint>
#include <string>

#include "optim/schedule.h"
#include "registry/registries.h"
#include "run/resume.h"

namespace kf {

/// A sentence for the log where the rate of the next step is above that of the last one, and not because the old schedule said so: a longer
/// run stretches a schedule that had come down. "" where it is not, or the old schedule cannot be made any more.
std::string rate_rise(const Resume& resume, const config::Config& config, const Registries& registries, const Schedule& schedule,
                      std::int64_t data_ranks);

}  // namespace kf
