#pragma once
// Attention on a CPU by kernels of our own, of tensors: fp32 and bf16, sums in fp32. No scores are held, heads of keys are shared by
// groups of queries' without copies, blocks of keys that nobody sees cost nothing, and caps and sinks are taken.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/attention/attention.h"

namespace kf {

/// What the kernels compute: no mask, bias or dropout.
bool takes_rows(const AttentionInput& in, const AttentionRules& rules);

struct RowsAttention {
  at::Tensor out;      // (B, H, T, Dv), which lies in memory as (B, T, H, Dv): the next product takes it as it is
  at::Tensor log_sum;  // (B, H, T) fp32
};
/// Without a graph. Neither is what a query that sees nothing has: 0 and -inf.
RowsAttention rows_forward(const AttentionInput& in, const AttentionRules& rules);

struct RowsGradients {
  at::Tensor q, k, v;  // of the types of those, in memory as (B, T, H, D)
  at::Tensor delta;    // (B, H, T) fp32
};
/// `log_sum` as forward's, or over more keys than those of `in`; `delta` = the sum of gradient * out over Dv is computed where it is
/// undefined, from `out`.
RowsGradients rows_backward(const AttentionInput& in, const AttentionRules& rules, const at::Tensor& gradient, const at::Tensor& out,
                            const at::Tensor& log_sum, const at::Tensor& delta);

/// (B, H, T, Dv). Recomputation may keep what it gives (model/recompute/kept_results.h): it is the operator kf::attention. The gradient of
/// its gradient is the formula's.
at::Tensor attention_by_rows(const AttentionInput& in, const AttentionRules& rules);

}  // namespace kf
