#pragma once
// Whether 16-bit numbers make a run slower instead of faster.

#include <ATen/core/Tensor.h>

#include <string>

#include "config/schema/config.h"

namespace kf {

/// Times one feed-forward layer of the model's widths, forward and backward, in `compute` and in fp32 (a few milliseconds, the kernels of
/// products as they are chosen). A sentence for the log where `compute` is slower by a tenth or more; "" otherwise, for fp32 and on a GPU.
std::string precision_note(const config::Config& config, at::ScalarType compute, at::Device device);

}  // namespace kf
