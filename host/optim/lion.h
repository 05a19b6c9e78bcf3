#pragma once
// Lion (Chen et al. 2023, algorithm 2): the sign of an interpolated momentum.

#include "optim/group_optimizer.h"

namespace kf {

class Lion final : public GroupOptimizer {
 public:
  Lion(std::vector<ParamGroup> groups, double beta1, double beta2);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  double beta1_;
  double beta2_;
};

}  // namespace kf
