#pragma once
// A feed-forward layer with a gate (Shazeer 2020, equation 6), as one node of the graph.

#include <ATen/core/Tensor.h>

#include "kernels/gate/gate_kind.h"

namespace kf {

struct GatedMlpInput {
  at::Tensor x;               // (.., C)
  at::Tensor gate, up, down;  // weights (F, C), (F, C), (C', F)
  GateKind kind = GateKind::silu;
};

/// (act(x gate^T) * (x up^T)) down^T: (.., C'). What is kept for backward is x and both products; what lies between them and `down` is
/// made again. One product for gate and up where they are `stacked`. Differentiable twice, by the formula; on a CPU, in fp32 or bf16.
/// Undefined where the kernel does not take this: the formula has to (GatedMlp).
at::Tensor fused_gated_mlp(const GatedMlpInput& in);

}  // namespace kf
