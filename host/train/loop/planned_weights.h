#pragma once
// A built model as a plan sees it.

#include "config/plan/weights.h"
#include "config/schema/config.h"
#include "model/parameter.h"

namespace kf {

/// What `parameters` and the job's optimizer are to a plan. They need no tensors yet; their placements do not matter.
plan::Weights planned_weights(const config::Config& config, const ParameterList& parameters);

}  // namespace kf
