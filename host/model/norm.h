#pragma once
// Normalisation over the last dim.

#include <ATen/core/Tensor.h>

#include "model/module.h"

namespace kf {

class Norm : public Module {
 public:
  /// (.., C) -> (.., C) in the type of x; statistics in fp32.
  virtual at::Tensor forward(const at::Tensor& x) const = 0;
};

struct NormOptions {
  double eps = 1e-5;
  bool weight = true;        // false: no weight
  bool unit_offset = false;  // multiply by 1 + weight, which starts at 0 (Gemma)
  bool bias = true;          // layernorm only
  bool fused = true;         // rmsnorm only: false takes plain operators
};

/// y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019, equation 4).
class RmsNorm final : public Norm {
 public:
  RmsNorm(std::int64_t dim, const NormOptions& options);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  ParameterPtr weight_;  // (C) or null
  NormOptions options_;
};

/// y = (x - mean) / sqrt(var + eps) * weight + bias (Ba et al. 2016, equation 4).
class LayerNorm final : public Norm {
 public:
  LayerNorm(std::int64_t dim, const NormOptions& options);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  std::int64_t dim_;
  ParameterPtr weight_;  // (C) or null
  ParameterPtr bias_;    // (C) or null
  NormOptions options_;
};

}  // namespace kf
