#pragma once
// silu(gate) * up in one node of the graph. It keeps gate and up, which the products before it made anyway; plain operators keep
// silu(gate), too.

#include <ATen/core/Tensor.h>

namespace kf {

/// gate, up (.., F) of one type -> (.., F). The plain twin is at::silu(gate) * up.
at::Tensor fused_silu_gate(const at::Tensor& gate, const at::Tensor& up);

}  // namespace kf
