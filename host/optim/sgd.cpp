#include "optim/sgd.h"

#include <ATen/ATen.h>

#include "kernels/adamw/adamw.h"

namespace kf {

Sgd::Sgd(std::vector<ParamGroup> groups, double momentum, bool nesterov)
    : GroupOptimizer(std::move(groups), momentum > 0 ? std::vector<Slots::Kind>{{"momentum"}} : std::vector<Slots::Kind>{}),
      momentum_(momentum),
      nesterov_(nesterov) {}

void Sgd::update(TensorLists& lists, double lr, double weight_decay) {
  decay_weights(lists.masters, lr, weight_decay);
  if (momentum_ == 0) {
    at::_foreach_add_(lists.masters, lists.gradients, -lr);
    return;
  }
  std::vector<at::Tensor>& buffer = lists.slots[0];
  at::_foreach_mul_(buffer, momentum_);
  at::_foreach_add_(buffer, lists.gradients, 1);
  if (nesterov_) {
    at::_foreach_add_(lists.masters, at::_foreach_add(lists.gradients, buffer, momentum_), -lr);
  } else {
    at::_foreach_add_(lists.masters, buffer, -lr);
  }
}

}  // namespace kf
