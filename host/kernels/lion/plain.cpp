#include <ATen/ATen.h>

#include <vector>

#include "kernels/adamw/wide_lists.h"
#include "kernels/lion/lion.h"

namespace kf {

void plain_lion(const LionLists& lists, const LionNumbers& n) {
  if (lists.weights.empty()) {
    return;
  }
  WorkingCopies copies;
  std::vector<at::Tensor> weights, gradients;
  for (std::size_t i = 0; i < lists.weights.size(); ++i) {
    weights.push_back(copies.of(lists.weights[i], lists.weights[i].sizes()));
    const at::Tensor wide = lists.gradients[i].to(at::kFloat);
    gradients.push_back(lists.factor.defined() ? wide * lists.factor : wide);
  }
  std::vector<at::Tensor> direction = at::_foreach_mul(lists.m, n.beta1);
  at::_foreach_add_(direction, gradients, 1 - n.beta1);
  at::_foreach_sign_(direction);
  at::_foreach_mul_(weights, 1 - n.lr * n.weight_decay);
  at::_foreach_add_(weights, direction, -n.lr);
  at::_foreach_mul_(lists.m, n.beta2);
  at::_foreach_add_(lists.m, gradients, 1 - n.beta2);
  copies.write_back();
  for (std::size_t i = 0; i < lists.values.size(); ++i) {
    if (lists.values[i].defined()) {
      lists.values[i].copy_(weights[i]);
    }
  }
}

}  // namespace kf
