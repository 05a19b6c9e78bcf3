#pragma once
// One half of a layer gates the other: act(gate) * up (Shazeer 2020).

#include <ATen/core/Tensor.h>

#include "kernels/gate/gate_kind.h"

namespace kf {

/// gate, up (.., F) of one type -> (.., F). Can be differentiated twice. On a CPU in fp32 and bf16 by rows, each read once: one node of the
/// graph, which keeps gate and up, that the products before it made anyway. Where these are the halves of the rows of one matrix (.., 2F),
/// so are their gradients. Elsewhere silu has such a node, too, and the others are their twins.
at::Tensor fused_gate(GateKind kind, const at::Tensor& gate, const at::Tensor& up);
/// The same by plain operators, which keep act(gate), too.
at::Tensor plain_gate(GateKind kind, const at::Tensor& gate, const at::Tensor& up);
/// act(x) by plain operators.
at::Tensor activated(GateKind kind, const at::Tensor& x);

}  // namespace kf
