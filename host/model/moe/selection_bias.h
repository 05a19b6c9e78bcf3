#pragma once
// Load balancing without a loss: a bias per expert that takes part in the choice of experts and in nothing else (Wang et al. 2024,
// "Auxiliary-loss-free load balancing"). It is a buffer: no gradient, no optimizer, but part of checkpoints.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/module.h"

namespace kf {

struct SelectionBiasOptions {
  /// ema: towards a running mean, ema += 0.01 (load - ema), bias += rate (1/E - ema), where load is the share of the assignments.
  /// sign: bias += rate sign(mean count - count) (DeepSeek V3, section 2.1.2).
  enum class Rule { ema, sign };
  /// rate over the progress p of the run: rate; rate (1 + cos(pi p)) / 2; rate min(1, 10 p).
  enum class Schedule { constant, cosine_decay, linear_warmup };

  std::int64_t experts = 0;  // E
  Rule rule = Rule::ema;
  Schedule schedule = Schedule::constant;
  double rate = 0.001;
};

class SelectionBias final : public Module {
 public:
  explicit SelectionBias(const SelectionBiasOptions& options);
  const at::Tensor& value() const { return bias_->value; }  // (E) fp32
  /// Once an update: `counts` (E) are the assignments of all its tokens.
  void move(const at::Tensor& counts, double progress);
  double rate(double progress) const;

 private:
  SelectionBiasOptions options_;
  ParameterPtr bias_;  // (E) "expert_bias"
  ParameterPtr ema_;   // (E) "expert_ema", rule ema only
};

}  // namespace kf
