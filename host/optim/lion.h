#pragma once
// Lion (Chen et al. 2023, algorithm 2): the sign of an interpolated momentum.

#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

class Lion final : public Optimizer {
 public:
  Lion(std::vector<ParamGroup> groups, double beta1, double beta2);
  void step(double lr) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  std::vector<ParamGroup> groups_;
  double beta1_;
  double beta2_;
  Slots slots_;  // exp_avg
};

}  // namespace kf
