#pragma once
// softmax(q k^T) v with everything that models do to the scores.

#include <ATen/core/Tensor.h>

#include <string>

#include "model/layer/dropout.h"
#include "model/layer/visibility.h"
#include "model/model.h"

namespace kf {

struct ScoreOptions {
  double scale = 1;  // multiplies q k^T
  std::int64_t layer = 0;
  std::int64_t alibi_heads = 0;  // H: scores are lowered by slope_h times the distance (Press et al. 2022); 0 for none
  double alibi_scale = 1;        // multiplies the slopes
  double softcap = 0;            // c > 0: scores become c tanh(scores / c)
  bool fp32_scores = false;
  bool fp32_softmax = true;
  std::string backend = "auto";  // model.sdpa_backend
  Reach reach;
};

/// 2^(-8 i / H) for i = 1 .. H where H is a power of two; other H take every second slope of twice the power below (Press et al. 2022).
at::Tensor alibi_slopes(std::int64_t heads);

/// Mixes values by scores. Plain scores take LibTorch's fused kernel; softcap, sinks, dropout and backend "math" take the formula itself,
/// and so does "auto" where train.compile_model is false.
class Mixer {
 public:
  Mixer(const ScoreOptions& options, Dropout dropout);

  /// q (B, H, T, D), k (B, Hkv, S, D), v (B, Hkv, S, Dv) -> (B, H, T, Dv); query head h reads kv head h / (H / Hkv).
  /// `sinks` (H) fp32 or undefined: scores that take part in each softmax and bring no value (gpt-oss).
  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const ForwardContext& context,
                 bool training) const;

 private:
  at::Tensor formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const at::Tensor& mask,
                     const at::Tensor& bias, const ForwardContext& context, bool training) const;
  at::Tensor fused(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask, bool causal) const;

  /// (B or 1, H, T, S): the penalty of distances, -inf where `seen`, undefined for everything, is false.
  at::Tensor alibi(const at::Tensor& seen, std::int64_t fresh, std::int64_t all, at::Device device) const;

  enum class Backend { any, flash, efficient, cudnn, formula };
  ScoreOptions options_;
  Backend backend_ = Backend::any;
  Dropout dropout_;
  mutable at::Tensor slopes_;  // (H) fp32, on the device of the scores
};

}  // namespace kf
