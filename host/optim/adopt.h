#pragma once
// ADOPT (Taniguchi et al. 2024, algorithm 2): the gradient is normalised by the second moment of the updates before, then averaged.

#include "optim/group_optimizer.h"

namespace kf {

/// v_0 = g_0^2, and the first update moves nothing. Then m = beta1 m + (1 - beta1) clip(g / max(sqrt(v), eps), t^(1/4));
/// p -= lr m; v = beta2 v + (1 - beta2) g^2, where t counts the updates before.
class Adopt final : public GroupOptimizer {
 public:
  Adopt(std::vector<ParamGroup> groups, double beta1, double beta2, double eps);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  double beta1_;
  double beta2_;
  double eps_;
};

}  // namespace kf
