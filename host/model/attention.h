#pragma once
// Causal self-attention with grouped queries (Ainslie et al. 2023), RoPE and optional per-head q/k norms.

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/linear.h"
#include "model/model.h"
#include "model/norm.h"
#include "model/rope.h"

namespace kf {

struct AttentionOptions {
  std::int64_t dim = 0;         // C
  std::int64_t n_heads = 0;     // H
  std::int64_t n_kv_heads = 0;  // Hkv; query head h reads kv head h / (H / Hkv)
  std::int64_t head_dim = 0;    // D
  std::int64_t layer = 0;       // index of its cache
  std::int64_t n_layers = 0;    // for the init of o_proj
  double init_std = 0.02;
  bool qk_norm = false;
  double norm_eps = 1e-5;
};

class Attention final : public Module {
 public:
  Attention(const AttentionOptions& options, std::shared_ptr<const Rope> rope);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const;  // (B, T, C) -> (B, T, C)

 private:
  at::Tensor heads(const Linear& projection, const Norm* norm, const at::Tensor& x) const;  // -> (B, H or Hkv, T, D)
  at::Tensor attend(const at::Tensor& q, at::Tensor k, at::Tensor v, const ForwardContext& context) const;

  AttentionOptions options_;
  std::shared_ptr<const Rope> rope_;
  std::shared_ptr<Linear> q_, k_, v_, o_;
  std::shared_ptr<RmsNorm> q_norm_, k_norm_;  // (D), shared by all heads; before RoPE
};

}  // namespace kf
