#pragma once
// Where a run computes. The GPU half of torch is opened here, at run time, before anything asks for CUDA: one binary serves machines with
// and without a GPU.

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace kf {

struct ComputeDevice {
  at::Device device = at::kCPU;
  std::string name;         // "NVIDIA H200"; empty on a CPU
  int capability = 0;       // major compute capability; 0 on a CPU
  std::uint64_t bytes = 0;  // of its memory; 0 on a CPU
};

/// Opens what `run.device` names. "auto" takes a GPU where one is present and answers; a GPU that is present but cannot be used is a line
/// in the log. "cuda" without a usable GPU throws Code::config with the reason and what to do.
ComputeDevice open_device(const std::string& wanted);

}  // namespace kf
