#include "optim/mars.h"

#include <ATen/ATen.h>

#include "kernels/adamw/adamw.h"
#include "model/expert_stack.h"

namespace kf {

const config::OwnFields<MarsOptions>& mars_fields() {
  using config::field;
  static const config::OwnFields<MarsOptions> fields{
      field("gamma", &MarsOptions::gamma, config::at_least(0), "Share of the correction by the gradient before."),
  };
  return fields;
}

Mars::Mars(std::vector<ParamGroup> groups, const MarsOptions& options)
    : GroupOptimizer(std::move(groups), {{"exp_avg"}, {"exp_avg_sq"}, {"last_grad"}, {"step", Slots::Start::scalar}}), options_(options) {}

void Mars::update(TensorLists& lists, double lr, double weight_decay) {
  const MarsOptions& o = options_;
  decay_weights(lists.masters, lr, weight_decay);
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const at::Tensor& g = lists.gradients[i];
    at::Tensor& m = lists.slots[0][i];
    at::Tensor& v = lists.slots[1][i];
    at::Tensor& before = lists.slots[2][i];
    at::Tensor& step = lists.slots[3][i];
    step.add_(1);
    const at::Tensor c = g + (o.gamma * o.beta1 / (1 - o.beta1)) * (g - before);
    const at::Tensor corrected = c / at::linalg_vector_norm(c, 2, own_dims(*lists.parameters[i]), /*keepdim=*/true).clamp_min(1);
    m.lerp_(corrected, 1 - o.beta1);
    v.mul_(o.beta2).addcmul_(corrected, corrected, 1 - o.beta2);
    const at::Tensor denominator = (v / bias_correction(o.beta2, step)).sqrt() + o.eps;
    lists.masters[i].sub_(m / bias_correction(o.beta1, step) / denominator, lr);
    before.copy_(g);
  }
}

}  // namespace kf
