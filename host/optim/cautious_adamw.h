#pragma once
// Cautious AdamW (Liang et al. 2024, "Cautious Optimizers", algorithm 1).

#include "optim/group_optimizer.h"

namespace kf {

/// AdamW's direction u where it agrees with the gradient's sign, made up for what is left out: u m / (mean(m) + 1e-8), m = [u g > 0]; the
/// mean is that of a weight, of an expert in a stack.
class CautiousAdamW final : public GroupOptimizer {
 public:
  CautiousAdamW(std::vector<ParamGroup> groups, double beta1, double beta2, double eps);

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  double beta1_;
  double beta2_;
  double eps_;
};

}  // namespace kf
