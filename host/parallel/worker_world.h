#pragma once
// A worker of DiLoCo: the ranks of one replica, as a world of their own.

#include "parallel/world.h"

namespace kf {

/// The ranks of `world` that have this rank's place along dp_replicate, with dp_replicate = 1. All ranks of `world` make it at the same
/// time.
World worker_world(const World& world);

}  // namespace kf
