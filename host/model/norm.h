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

/// y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019, equation 4).
class RmsNorm final : public Norm {
 public:
  RmsNorm(std::int64_t dim, double eps);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  ParameterPtr weight_;  // (C)
  double eps_;
};

/// y = (x - mean) / sqrt(var + eps) * weight + bias (Ba et al. 2016, equation 4).
class LayerNorm final : public Norm {
 public:
  LayerNorm(std::int64_t dim, double eps);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  ParameterPtr weight_;  // (C)
  ParameterPtr bias_;    // (C)
  double eps_;
};

}  // namespace kf
