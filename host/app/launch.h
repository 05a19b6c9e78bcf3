#pragma once
// How many ranks were started, from the launcher's variables.

#include <cstdint>

namespace kf {

/// WORLD_SIZE (torchrun) or SLURM_NTASKS inside a job step, else 1. Throws Code::communication for more than one: the parallel engine is to
/// come.
std::int64_t launched_world();

}  // namespace kf
