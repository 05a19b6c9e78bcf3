#pragma once
// Self-attention with grouped queries from a block's input to its output, as one node of the graph.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace kf {

/// Norms of every head of q and k before they turn: h / sqrt(mean(h^2) + eps), times a factor.
struct HeadNorms {
  bool on = false;
  double eps = 1e-5;
  at::Tensor q, k;  // factors (D), or undefined
};

struct SelfAttentionInput {
  at::Tensor x;             // (B, T, C)
  at::Tensor q, k, v, out;  // weights: (H D, C), (Hkv D, C), (Hkv D, C), (C', H D)
  HeadNorms norms;
  at::Tensor cos, sin;  // (T, n / 2) fp32, of the first n components of each head of q and k; undefined: nothing turns
  bool interleaved = false;
  at::Tensor first;  // as AttentionInput's; undefined: 0
  std::int64_t head_dim = 0;
  double scale = 1;
  double softcap = 0;
};

/// softmax(scale q k^T) v out^T of q, k, v = x W^T, normed and turned: (B, T, C'), causal. What is kept for backward is x, all three
/// products as one matrix, what was mixed, and a sum a query; norms are made again. One product for q, k and v where they are `stacked`.
/// Differentiable twice, by the formula; on a CPU, in fp32 or bf16. Undefined where the kernel does not take this: the formula has to
/// (GroupedAttention).
at::Tensor fused_self_attention(const SelfAttentionInput& in);

}  // namespace kf
