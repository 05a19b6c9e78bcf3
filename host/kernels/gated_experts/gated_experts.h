#pragma once
// The experts of a layer, each a feed-forward layer with a gate (Shazeer 2020, equation 6) for the tokens that were sent to it, as one node
// of the graph.

#include <ATen/core/Tensor.h>

#include "kernels/gate/gate_kind.h"
#include "kernels/grouped_linear/expert_rows.h"

namespace kf {

struct GatedExpertsInput {
  at::Tensor x;               // (N, C)
  at::Tensor gate, up, down;  // weights (E, F, C), (E, F, C), (E, C', F)
  at::Tensor weights;         // (N, k) fp32: what each expert's output counts
  GateKind kind = GateKind::silu;
};

/// The sum over a token's experts of weight * (act(x gate^T) * (x up^T)) down^T: (N, C'). What is kept for backward is x and both products
/// of each expert; rows are gathered and what lies between the products and `down` is made again, and what came out of the experts is not
/// needed: the gradient of a weight is that of its expert's inner row times this row. Differentiable twice, by the formula; on a CPU, in
/// fp32 or bf16. Undefined where the kernel does not take this: the formula has to (GroupedExperts).
at::Tensor fused_gated_experts(const GatedExpertsInput& in, const ExpertRows& rows);

}  // namespace kf
