#include <ATen/ATen.h>

#include "kernels/adamw/adamw.h"
#include "kernels/adamw/wide_lists.h"

namespace kf {

void decay_weights(at::TensorList weights, double lr, double weight_decay) {
  if (weight_decay != 0) {
    at::_foreach_mul_(weights, 1 - lr * weight_decay);
  }
}

at::Tensor bias_correction(double beta, const at::Tensor& step) { return 1 - at::pow(at::Scalar(beta), step.to(at::kDouble)); }

std::vector<at::Tensor> adamw_directions(const AdamWLists& lists, const AdamWNumbers& n) {
  at::_foreach_lerp_(lists.m, lists.gradients, 1 - n.beta1);
  at::_foreach_mul_(lists.v, n.beta2);
  at::_foreach_addcmul_(lists.v, lists.gradients, lists.gradients, 1 - n.beta2);
  std::vector<at::Tensor> out;
  for (std::size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor& step = lists.steps[i];
    const at::Tensor mean = n.nesterov ? n.beta1 * lists.m[i] / bias_correction(n.beta1, step + 1) +
                                             (1 - n.beta1) * lists.gradients[i] / bias_correction(n.beta1, step)
                                       : lists.m[i] / bias_correction(n.beta1, step);
    const at::Tensor variance = lists.v[i] / bias_correction(n.beta2, step);
    out.push_back(mean / ((n.eps_root > 0 ? variance + n.eps_root : variance).sqrt() + n.eps));
  }
  return out;
}

void plain_adamw(const AdamWLists& lists, const AdamWNumbers& n) {
  if (lists.ok.defined() && lists.ok.item<float>() == 0) {
    return;
  }
  const WideLists wide(lists);
  const AdamWLists l = wide.lists();
  const std::vector<at::Tensor> updates = adamw_directions(l, n);
  decay_weights(l.weights, n.lr, n.weight_decay);
  at::_foreach_add_(l.weights, updates, -n.lr);
  wide.write_back();
}

}  // namespace kf
