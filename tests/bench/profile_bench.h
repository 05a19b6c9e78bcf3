#pragma once
// What profiling costs.

#include "registry/registries.h"

namespace kf::bench {

/// A range where nobody records and where somebody does, and a training step with and without all that a profile records of it.
void bench_profile(const Registries& registries);

}  // namespace kf::bench
