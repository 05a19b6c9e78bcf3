#include "optim/lion.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "kernels/lion/lion.h"
#include "optim/values.h"

namespace kf {

Lion::Lion(std::vector<ParamGroup> groups, const LionOptions& options)
    : groups_(std::move(groups)), options_(options), slots_({{"exp_avg"}}) {}

void Lion::step_with(double lr, const UpdateTerms& terms) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    const TensorLists lists = stored_lists_of(group, slots_);
    if (lists.empty()) {
      continue;
    }
    const std::vector<at::Tensor> values = values_beside(lists);
    options_.kernels->lion({lists.masters, lists.gradients, lists.slots[0], values, terms.factor},
                           {lr, group.weight_decay, options_.beta1, options_.beta2});
    say_written(lists, values);
  }
}

OptimizerState Lion::state() const {
  OptimizerState state;
  slots_.save(state);
  return state;
}

void Lion::load(const OptimizerState& state) { slots_.load(state, groups_); }

}  // namespace kf
