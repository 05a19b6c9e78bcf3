#pragma once
// Micro-batches of several sizes from pieces of one size, where an update is no multiple of train.batch_size.

#include <memory>

#include "config/plan/batch_plan.h"
#include "data/loader/loader.h"

namespace kf {

/// `pieces`, whose batches are the pieces of `plan`, one after the other in the order of the data; `pieces` itself where each micro-batch
/// is a piece. So the order, its epochs and mixture are those of the same data in even batches.
std::unique_ptr<Loader> joined(std::unique_ptr<Loader> pieces, const config::BatchPlan& plan);

}  // namespace kf
