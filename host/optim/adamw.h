#pragma once
// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  bool fused = true;  // one kernel for a whole group; false takes the foreach twin
};

class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options);
  void step(double lr) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  std::vector<ParamGroup> groups_;
  AdamWOptions options_;
  Slots slots_;  // exp_avg, exp_avg_sq, step
};

}  // namespace kf
