#pragma once
// RMSProp (Tieleman and Hinton 2012, lecture 6.5) with momentum and decoupled decay.

#include "config/schema/own_fields.h"
#include "optim/group_optimizer.h"

namespace kf {

struct RmsPropOptions {
  double beta2 = 0.95;
  double eps = 1e-8;
  double momentum = 0.9;
};

/// [optimizer.rmsprop]
const config::OwnFields<RmsPropOptions>& rmsprop_fields();

/// v = beta2 v + (1 - beta2) g^2; b = momentum b + g / (sqrt(v) + eps); p -= lr b. As torch.optim.RMSprop, not centred.
class RmsProp final : public GroupOptimizer {
 public:
  RmsProp(std::vector<ParamGroup> groups, const RmsPropOptions& options);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  RmsPropOptions options_;
};

}  // namespace kf
