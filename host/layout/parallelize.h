#pragma once
// Where the weights of a model lie: the one place that decides it, and the order in which it is decided.

#include <cstdint>

#include "config/schema/config.h"
#include "model/model.h"
#include "model/weight_unit.h"
#include "optim/optimizer.h"
#include "parallel/world.h"

namespace kf {

/// Before the weights have storage: placements, then units. Along dp_shard every weight that trains is cut into rows, as even as can be;
/// one that the optimizer needs whole (Optimizer::needs) lies whole on one rank, the largest first, each on the rank that has least. Frozen
/// weights and buffers stay whole on all ranks. Experts are divided along ep first; what a rank along ep has of them is cut so over the
/// ranks that have the same (World::expert_shards). What belongs to another stage of a pipeline is
/// empty here. A block is a unit (weight_unit.h), and so is what is in no block. On one rank nothing happens.
void parallelize(Model& model, Optimizer& optimizer, const World& world, const UnitOptions& options);

/// `[distributed]`, as far as units ask.
UnitOptions unit_options(const config::DistributedConfig& distributed);

}  // namespace kf
