#pragma once
// LibTorch's default CPU generator, as bytes.

#include <string>

#include "core/fs.h"

namespace kf {

std::string cpu_rng_state();
/// Throws Code::checkpoint naming `checkpoint` for bytes that are no state.
void set_cpu_rng_state(const std::string& bytes, const fs::path& checkpoint);

}  // namespace kf
