#pragma once
// silu(gate) * up (Shazeer 2020).

#include <ATen/core/Tensor.h>

namespace kf {

/// gate, up (.., F) of one type -> (.., F). Can be differentiated twice. One node of the graph, which keeps gate and up, that the products
/// before it made anyway.
at::Tensor fused_gate(const at::Tensor& gate, const at::Tensor& up);
/// The same by plain operators, which keep silu(gate), too.
at::Tensor plain_gate(const at::Tensor& gate, const at::Tensor& up);

}  // namespace kf
