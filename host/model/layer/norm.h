#pragma once
// Normalisation over the last dim.

#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/kernels.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rms_norm/rms_norm.h"
#include "model/layer/tensor_ranks.h"
#include "model/module.h"

namespace kf {

struct PartArgs;

/// x / sqrt(mean(x^2) + eps) * factor.
struct RmsFactor {
  at::Tensor factor;  // (C), or undefined for 1
  double eps = 0;
};

class Norm : public Module {
 public:
  bool observable() const override { return true; }
  /// (.., C) -> (.., C) in the type of x; statistics in fp32.
  virtual at::Tensor forward(const at::Tensor& x) const = 0;
  /// x + branch, and the norm of it, which for some norms are one kernel.
  virtual SumAndNorm forward_sum(const at::Tensor& x, const at::Tensor& branch) const;
  /// Where forward is nothing but this: what it computes with, for who computes it inside of something larger.
  virtual std::optional<RmsFactor> as_rms() const { return std::nullopt; }
};

struct NormOptions {
  double eps = 1e-5;
  bool weight = true;        // false: no weight
  bool unit_offset = false;  // multiply by 1 + weight, which starts at 0 (Gemma)
  bool bias = true;          // layernorm only
  const Kernels* kernels = &fused_kernels();
  /// Over whom the C of a row are divided, in runs of `unit`: of x (.., C / size) each has its part, statistics are of all of them.
  TensorRanks ranks = {};
  std::int64_t unit = 1;
};

/// y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019, equation 4).
class RmsNorm final : public Norm {
 public:
  RmsNorm(std::int64_t dim, const NormOptions& options);
  at::Tensor forward(const at::Tensor& x) const override;
  SumAndNorm forward_sum(const at::Tensor& x, const at::Tensor& branch) const override;
  std::optional<RmsFactor> as_rms() const override;

 private:
  at::Tensor factor() const;  // (C) or undefined

  ParameterPtr weight_;  // (C) or null
  NormOptions options_;
};

/// A norm of every head with a weight of its own: (B, T, H, D) -> (B, T, H, D). Files know the weights as one tensor (Cohere) or as one a
/// head (StableLM 2).
class HeadNorm final : public Norm {
 public:
  /// `plain` is the norm itself, over D and without a weight.
  HeadNorm(std::shared_ptr<Norm> plain, std::int64_t heads, std::int64_t dim, const NormOptions& options);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  std::shared_ptr<Norm> plain_;
  ParameterPtr weight_;  // (H, D) or null
  NormOptions options_;
};

/// y = (x - mean) / sqrt(var + eps) * weight + bias (Ba et al. 2016, equation 4).
class LayerNorm final : public Norm {
 public:
  LayerNorm(std::int64_t dim, const NormOptions& options);
  at::Tensor forward(const at::Tensor& x) const override;
  SumAndNorm forward_sum(const at::Tensor& x, const at::Tensor& branch) const override;

 private:
  LayerNormWeights weights() const;

  ParameterPtr weight_;  // (C) or null
  ParameterPtr bias_;    // (C) or null
  NormOptions options_;
};

/// What the settings say of norms.
NormOptions norm_options(const PartArgs& args);

}  // namespace kf
