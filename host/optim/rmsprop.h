#pragma once
// RMSProp (Tieleman and Hinton 2012, lecture 6.5) with momentum and decoupled decay.

#include "optim/group_optimizer.h"

namespace kf {

/// v = beta2 v + (1 - beta2) g^2; b = momentum b + g / (sqrt(v) + eps); p -= lr b. As torch.optim.RMSprop, not centred.
class RmsProp final : public GroupOptimizer {
 public:
  RmsProp(std::vector<ParamGroup> groups, double beta2, double eps, double momentum);

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  double beta2_;
  double eps_;
  double momentum_;
};

}  // namespace kf
