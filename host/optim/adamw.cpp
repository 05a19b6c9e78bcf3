#include "optim/adamw.h"

#include <ATen/ATen.h>

#include <cmath>

namespace kf {
namespace {

constexpr std::size_t kM = 0;
constexpr std::size_t kV = 1;
constexpr std::size_t kStep = 2;

/// The same update from list operators, one at a time: the reference of the fused kernel.
void foreach_step(TensorLists& lists, double lr, double weight_decay, const AdamWOptions& o) {
  std::vector<at::Tensor>& m = lists.slots[kM];
  std::vector<at::Tensor>& v = lists.slots[kV];
  at::_foreach_mul_(lists.masters, 1 - lr * weight_decay);
  at::_foreach_lerp_(m, lists.gradients, 1 - o.beta1);
  at::_foreach_mul_(v, o.beta2);
  at::_foreach_addcmul_(v, lists.gradients, lists.gradients, 1 - o.beta2);
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const double step = lists.slots[kStep][i].item<double>();  // parameters may have begun at different steps
    const at::Tensor denominator = v[i].sqrt().div_(std::sqrt(1 - std::pow(o.beta2, step))).add_(o.eps);
    lists.masters[i].addcdiv_(m[i], denominator, -lr / (1 - std::pow(o.beta1, step)));
  }
}

}  // namespace

AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options)
    : groups_(std::move(groups)),
      options_(options),
      slots_({{"exp_avg", Slots::Start::zeros}, {"exp_avg_sq", Slots::Start::zeros}, {"step", Slots::Start::scalar}}) {}

void AdamW::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_, 3);
    if (lists.masters.empty()) {
      continue;
    }
    at::_foreach_add_(lists.slots[kStep], 1);
    if (options_.fused) {
      at::_fused_adamw_(lists.masters, lists.gradients, lists.slots[kM], lists.slots[kV], {}, lists.slots[kStep], lr, options_.beta1,
                        options_.beta2, group.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
    } else {
      foreach_step(lists, lr, group.weight_decay, options_);
    }
  }
}

OptimizerState AdamW::state() const {
  OptimizerState state;
  slots_.save(state);
  return state;
}

void AdamW::load(const OptimizerState& state) { slots_.load(state, groups_); }

}  // namespace kf
