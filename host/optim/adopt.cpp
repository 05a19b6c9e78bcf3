#include "optim/adopt.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace kf {
namespace {

constexpr double kTiny = 1e-30;  // with eps = 0 a weight that never had a gradient would divide 0 by 0

}  // namespace

Adopt::Adopt(std::vector<ParamGroup> groups, double beta1, double beta2, double eps)
    : GroupOptimizer(std::move(groups), {{"exp_avg"}, {"exp_avg_sq"}, {"step", Slots::Start::scalar}}),
      beta1_(beta1),
      beta2_(beta2),
      eps_(eps) {}

void Adopt::update(TensorLists& lists, double lr, double weight_decay) {
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const at::Tensor& g = lists.gradients[i];
    at::Tensor& m = lists.slots[0][i];
    at::Tensor& v = lists.slots[1][i];
    at::Tensor& step = lists.slots[2][i];
    // 0 in the first update and 1 afterwards, on the device: nothing waits to find out.
    const at::Tensor moves = step.clamp_max(1);
    const at::Tensor limit = step.pow(0.25);
    const at::Tensor normed = (g / v.sqrt().clamp_min(std::max(eps_, kTiny))).minimum(limit).maximum(-limit);
    m.lerp_(normed, moves * (1 - beta1_));
    lists.masters[i].mul_(1 - moves * (lr * weight_decay)).sub_(m * moves, lr);
    v.lerp_(g * g, 1 - moves * beta2_);
    step.add_(1);
  }
}

}  // namespace kf
