#pragma once
// QK-clip (Kimi Team 2025, "Kimi K2", section 2.1, algorithm 1): keeps attention scores from growing without end.

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/model.h"

namespace kf {

/// After an update: each query head of layer i whose largest score s of the step exceeds tau has its query weights multiplied by
/// tau / (s + 1e-6). Key heads are shared by several query heads, so they stay. `largest_scores` as in ForwardContext.
void clip_queries(Model& model, const std::vector<at::Tensor>& largest_scores, double tau);

}  // namespace kf
