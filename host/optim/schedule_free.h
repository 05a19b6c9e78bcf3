#pragma once
// Schedule-Free AdamW (Defazio et al. 2024, "The Road Less Scheduled", algorithm 1 with decay at y).

#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct ScheduleFreeOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  std::int64_t warmup_steps = 0;
};

/// Gradients are taken at y (the masters while training); the averages x are what evaluation and checkpoints show.
class ScheduleFreeAdamW final : public Optimizer {
 public:
  ScheduleFreeAdamW(std::vector<ParamGroup> groups, const ScheduleFreeOptions& options);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }
  void step(double lr) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;
  void use_averages(bool on) override;

 private:
  std::vector<ParamGroup> groups_;
  ScheduleFreeOptions options_;
  Slots slots_;  // z, x, exp_avg_sq
  std::int64_t step_ = 0;
  double largest_lr_ = 0;  // of the warmed-up rates so far; its square weighs the average
  double weight_sum_ = 0;
  bool averaged_ = false;
};

}  // namespace kf
