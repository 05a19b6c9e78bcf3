#include "optim/group_optimizer.h"

#include <ATen/ATen.h>

namespace kf {

void GroupOptimizer::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_);
    if (!lists.empty()) {
      update(lists, lr, group.weight_decay);
      lists.write_back();
    }
  }
}

OptimizerState GroupOptimizer::state() const {
  OptimizerState state;
  slots_.save(state);
  return state;
}

void GroupOptimizer::load(const OptimizerState& state) { slots_.load(state, groups_); }

void decay_weights(std::vector<at::Tensor>& masters, double lr, double weight_decay) {
  if (weight_decay != 0) {
    at::_foreach_mul_(masters, 1 - lr * weight_decay);
  }
}

at::Tensor bias_correction(double beta, const at::Tensor& step) { return 1 - at::pow(at::Scalar(beta), step.to(at::kDouble)); }

}  // namespace kf
