#include "optim/rmsprop.h"

#include <ATen/ATen.h>

namespace kf {

RmsProp::RmsProp(std::vector<ParamGroup> groups, double beta2, double eps, double momentum)
    : GroupOptimizer(std::move(groups), {{"exp_avg_sq"}, {"momentum"}}), beta2_(beta2), eps_(eps), momentum_(momentum) {}

void RmsProp::update(TensorLists& lists, double lr, double weight_decay) {
  std::vector<at::Tensor>& v = lists.slots[0];
  std::vector<at::Tensor>& buffer = lists.slots[1];
  at::_foreach_mul_(v, beta2_);
  at::_foreach_addcmul_(v, lists.gradients, lists.gradients, 1 - beta2_);
  std::vector<at::Tensor> denominator = at::_foreach_sqrt(v);
  at::_foreach_add_(denominator, eps_);
  at::_foreach_mul_(buffer, momentum_);
  at::_foreach_add_(buffer, at::_foreach_div(lists.gradients, denominator), 1);
  decay_weights(lists.masters, lr, weight_decay);
  at::_foreach_add_(lists.masters, buffer, -lr);
}

}  // namespace kf
