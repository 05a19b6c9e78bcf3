#include "optim/lion.h"

#include <ATen/ATen.h>

namespace kf {

Lion::Lion(std::vector<ParamGroup> groups, double beta1, double beta2)
    : GroupOptimizer(std::move(groups), {{"exp_avg"}}), beta1_(beta1), beta2_(beta2) {}

void Lion::update(TensorLists& lists, double lr, double weight_decay) {
  std::vector<at::Tensor>& m = lists.slots[0];
  std::vector<at::Tensor> direction = at::_foreach_mul(m, beta1_);
  at::_foreach_add_(direction, lists.gradients, 1 - beta1_);
  at::_foreach_sign_(direction);
  at::_foreach_mul_(lists.masters, 1 - lr * weight_decay);
  at::_foreach_add_(lists.masters, direction, -lr);
  at::_foreach_mul_(m, beta2_);
  at::_foreach_add_(m, lists.gradients, 1 - beta2_);
}

}  // namespace kf
