#include "optim/lion.h"

#include <ATen/ATen.h>

namespace kf {

Lion::Lion(std::vector<ParamGroup> groups, double beta1, double beta2)
    : groups_(std::move(groups)), beta1_(beta1), beta2_(beta2), slots_({{"exp_avg", Slots::Start::zeros}}) {}

void Lion::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_, 1);
    if (lists.masters.empty()) {
      continue;
    }
    std::vector<at::Tensor>& m = lists.slots[0];
    std::vector<at::Tensor> update = at::_foreach_mul(m, beta1_);
    at::_foreach_add_(update, lists.gradients, 1 - beta1_);
    at::_foreach_sign_(update);
    at::_foreach_mul_(lists.masters, 1 - lr * group.weight_decay);
    at::_foreach_add_(lists.masters, update, -lr);
    at::_foreach_mul_(m, beta2_);
    at::_foreach_add_(m, lists.gradients, 1 - beta2_);
  }
}

OptimizerState Lion::state() const {
  OptimizerState state;
  slots_.save(state);
  return state;
}

void Lion::load(const OptimizerState& state) { slots_.load(state, groups_); }

}  // namespace kf
