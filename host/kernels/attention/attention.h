#pragma once
// softmax(scale q k^T) v, with what models do to the scores.

#include <ATen/core/Tensor.h>

#include <functional>

namespace kf {

struct AttentionInput {
  at::Tensor q, k, v;   // (B, H, T, D), (B, H, S, D), (B, H, S, Dv)
  at::Tensor mask;      // (B or 1, 1 or H, T, S) bool: who is seen; undefined where `causal`, or nothing at all, says it
  bool causal = false;  // where there is no mask: query t sees keys 0 .. t
  at::Tensor bias;      // (B or 1, H, T, S) added to the scores, -inf where nothing is seen; undefined for none
  at::Tensor sinks;     // (H): scores that take part in each softmax and bring no value (gpt-oss); undefined for none
  std::function<at::Tensor(const at::Tensor& weights)> drop;  // dropout of the softmax's result; null for none
};

struct AttentionRules {
  /// Which kernel of LibTorch's: by what is there, or one alone. No other is then taken in its place: Code::config where it cannot.
  enum class Backend { any, flash, efficient, cudnn };
  double scale = 1;
  double softcap = 0;  // c > 0: scores become c tanh(scores / c)
  bool fp32_scores = false;
  bool fp32_softmax = true;
  Backend backend = Backend::any;
};

/// (B, H, T, Dv) by LibTorch's kernel, which never holds the scores and can be differentiated once. It takes the formula where there are
/// caps, sinks or dropout: no kernel has those. The arithmetic of scores and softmax is the kernel's own.
at::Tensor fused_attention(const AttentionInput& in, const AttentionRules& rules);
/// The same by the formula, which holds all scores.
at::Tensor plain_attention(const AttentionInput& in, const AttentionRules& rules);

}  // namespace kf
