#pragma once
// softmax(q k^T) v with everything that models do to the scores.

#include <ATen/core/Tensor.h>

#include <string>

#include "model/dropout.h"
#include "model/model.h"
#include "model/visibility.h"

namespace kf {

struct ScoreOptions {
  double scale = 1;  // multiplies q k^T
  std::int64_t layer = 0;
  double softcap = 0;  // c > 0: scores become c tanh(scores / c)
  bool fp32_scores = false;
  bool fp32_softmax = true;
  std::string backend = "auto";  // model.sdpa_backend
  Reach reach;
};

/// Mixes values by scores. Plain scores take LibTorch's fused kernel; softcap, sinks, dropout and backend "math" take the formula itself.
class Mixer {
 public:
  Mixer(const ScoreOptions& options, Dropout dropout);

  /// q (B, H, T, D), k (B, Hkv, S, D), v (B, Hkv, S, Dv) -> (B, H, T, Dv); query head h reads kv head h / (H / Hkv).
  /// `sinks` (H) fp32 or undefined: scores that take part in each softmax and bring no value (gpt-oss).
  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const ForwardContext& context,
                 bool training) const;

 private:
  at::Tensor formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const at::Tensor& mask,
                     const ForwardContext& context, bool training) const;
  at::Tensor fused(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask, bool causal) const;

  enum class Backend { any, flash, efficient, cudnn, formula };
  ScoreOptions options_;
  Backend backend_ = Backend::any;
  Dropout dropout_;
};

}  // namespace kf
