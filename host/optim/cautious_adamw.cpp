#include "optim/cautious_adamw.h"

#include <ATen/ATen.h>

#include "kernels/adamw/adamw.h"
#include "model/expert_stack.h"

namespace kf {

namespace {

constexpr double kShareFloor = 1e-8;  // where no direction agrees

}  // namespace

CautiousAdamW::CautiousAdamW(std::vector<ParamGroup> groups, double beta1, double beta2, double eps)
    : GroupOptimizer(std::move(groups), {{"exp_avg"}, {"exp_avg_sq"}, {"step", Slots::Start::scalar}}),
      beta1_(beta1),
      beta2_(beta2),
      eps_(eps) {}

void CautiousAdamW::update(TensorLists& lists, double lr, double weight_decay) {
  decay_weights(lists.masters, lr, weight_decay);
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const at::Tensor& g = lists.gradients[i];
    at::Tensor& m = lists.slots[0][i];
    at::Tensor& v = lists.slots[1][i];
    at::Tensor& step = lists.slots[2][i];
    step.add_(1);
    m.lerp_(g, 1 - beta1_);
    v.mul_(beta2_).addcmul_(g, g, 1 - beta2_);
    const at::Tensor u = m / bias_correction(beta1_, step) / ((v / bias_correction(beta2_, step)).sqrt() + eps_);
    const at::Tensor mask = (u * g).gt(0).to(u.scalar_type());
    const at::Tensor share = mask.mean(own_dims(*lists.parameters[i]), /*keepdim=*/true);
    lists.masters[i].sub_(u * mask / (share + kShareFloor), lr);
  }
}

}  // namespace kf
