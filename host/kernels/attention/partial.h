#pragma once
// Attention over a part of the keys, to be joined with that over the others: what a ring of ranks computes with.

#include <ATen/core/Tensor.h>

#include "kernels/attention/attention.h"

namespace kf {

/// Of some queries over some keys. Both fp32, without a graph.
struct PartialAttention {
  at::Tensor out;      // (B, H, T, Dv): the mean of the values by the softmax over these keys; 0 where a query sees none of them
  at::Tensor log_sum;  // (B, H, T): the log of the sum of exp(scores), -inf where it sees none

  /// Takes other keys in: both become those of all (the online softmax of Milakov and Gimelshein 2018).
  void join(const PartialAttention& other);
  /// Takes in sinks (H): scores without a value.
  void join_sinks(const at::Tensor& sinks);
};

/// Gradients of q, k and v in fp32.
struct PartialGradients {
  at::Tensor q, k, v;
};

/// With `fused` the kernel for CPUs where it can (by_rows.h: no bias), else the formula. `in` has neither sinks nor dropout, and
/// rules.fp32_softmax holds.
PartialAttention partial_attention(const AttentionInput& in, const AttentionRules& rules, bool fused);

/// The backward of the attention over all keys, as far as it goes through those of `in`. `gradient` and `out` (B, H, T, Dv) in the type of
/// q, `log_sum` and `delta` = sum of gradient * out over Dv (B, H, T) fp32: of all keys (Dao et al. 2022, FlashAttention, appendix B.2).
PartialGradients partial_backward(const AttentionInput& in, const AttentionRules& rules, bool fused, const at::Tensor& gradient,
                                  const at::Tensor& out, const at::Tensor& log_sum, const at::Tensor& delta);

}  // namespace kf
