#pragma once
// GPUs, without opening any.

#include <string>
#include <vector>

namespace kf {

/// Those that this process may use, as CUDA_VISIBLE_DEVICES names them: its own words, else the numbers of the driver's device nodes
/// (nvidia0, nvidia1, ...) in `devices`.
std::vector<std::string> visible_gpus(const std::string& devices = "/dev");

}  // namespace kf
