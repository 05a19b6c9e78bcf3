#pragma once
// How many processes were started together, from the variables of launchers.

#include <cstdint>

namespace kf {

/// What torchrun, MPI's launchers, srun, jsrun or flux say, else 1. Throws Code::communication for more than one, which nobody would notice
/// otherwise: each would train alone.
std::int64_t launched_world();

}  // namespace kf
