#pragma once
// The largest attention score of each head, which fused kernels do not tell.

#include <ATen/core/Tensor.h>

namespace kf {

/// q (B, H, T, D), k (B, Hkv, S, D) -> (H) fp32: the maximum of scale * q k^T over what may be attended, without gradients. `mask` is
/// (B or 1, 1, T, S) bool, true = may attend; undefined with `causal` it is a triangle, else everything. Takes pieces of queries, so T S
/// scores are never held.
at::Tensor largest_scores(const at::Tensor& q, const at::Tensor& k, double scale, const at::Tensor& mask, bool causal);

}  // namespace kf
