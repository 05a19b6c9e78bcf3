#pragma once
// The state of an optimizer on its way to another process.

#include "optim/optimizer.h"
#include "parallel/group.h"

namespace kf {

/// What rank 0 of `group` has, on all its ranks; on the others new tensors, which they may keep (OptimizerState::owned).
OptimizerState carried(const OptimizerState& mine, Group& group);

}  // namespace kf
