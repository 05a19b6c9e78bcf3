#pragma once
// Lion (Chen et al. 2023, algorithm 2): the sign of an interpolated momentum.

#include <vector>

#include "kernels/kernels.h"
#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  const Kernels* kernels = &fused_kernels();
};

class Lion final : public Optimizer {
 public:
  Lion(std::vector<ParamGroup> groups, const LionOptions& options);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }
  void step(double lr) override { step_with(lr, {}); }
  bool takes_factor() const override { return true; }
  void step_with(double lr, const UpdateTerms& terms) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  std::vector<ParamGroup> groups_;
  LionOptions options_;
  Slots slots_;  // exp_avg
};

}  // namespace kf
