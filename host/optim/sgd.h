#pragma once
// Gradient descent with momentum and decoupled decay (SGDW, Loshchilov and Hutter 2019, algorithm 1).

#include "optim/group_optimizer.h"

namespace kf {

/// b = momentum b + g; p -= lr b, with nesterov p -= lr (g + momentum b) (Sutskever et al. 2013, as torch.optim.SGD without dampening).
class Sgd final : public GroupOptimizer {
 public:
  Sgd(std::vector<ParamGroup> groups, double momentum, bool nesterov);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  double momentum_;
  bool nesterov_;
};

}  // namespace kf
