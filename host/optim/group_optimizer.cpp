#include "optim/group_optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace kf {

void GroupOptimizer::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_);
    if (!lists.empty()) {
      update(lists, lr, group.weight_decay);
      lists.write_back();
    }
  }
}

OptimizerState GroupOptimizer::state() const {
  OptimizerState state;
  slots_.save(state);
  return state;
}

void GroupOptimizer::load(const OptimizerState& state) { slots_.load(state, groups_); }

}  // namespace kf
