#include "optim/sophia.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "kernels/adamw/adamw.h"
#include "optim/group_optimizer.h"

namespace kf {
namespace {

constexpr const char* kUpdates = "sophia_updates";

}  // namespace

const config::OwnFields<SophiaOptions>& sophia_fields() {
  using config::field;
  static const config::OwnFields<SophiaOptions> fields{
      field("gamma", &SophiaOptions::gamma, config::above(0), "Share of the curvature in the denominator: smaller clips more."),
      field("update_interval", &SophiaOptions::interval, config::at_least(1), "Updates between two estimates of the curvature."),
  };
  return fields;
}

Sophia::Sophia(std::vector<ParamGroup> groups, const SophiaOptions& options)
    : options_(options), groups_(std::move(groups)), slots_({{"exp_avg"}, {"hessian"}}) {}

void Sophia::take_curvature(const Curvature& curvature) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (const auto estimate = curvature.find(parameter->name); estimate != curvature.end()) {
        slots_.of(*parameter)[1].lerp_(estimate->second, 1 - options_.beta2);
      }
    }
  }
}

void Sophia::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_);
    decay_weights(lists.masters, lr, group.weight_decay);
    for (std::size_t i = 0; i < lists.masters.size(); ++i) {
      at::Tensor& m = lists.slots[0][i];
      m.lerp_(lists.gradients[i], 1 - options_.beta1);
      const at::Tensor scale = (lists.slots[1][i] * options_.gamma).clamp_min(options_.eps);
      lists.masters[i].sub_((m / scale).clamp(-1, 1), lr);
    }
    lists.write_back();
  }
  ++updates_;
}

OptimizerState Sophia::state() const {
  OptimizerState state;
  slots_.save(state);
  state.integers[kUpdates] = updates_;
  return state;
}

void Sophia::load(const OptimizerState& state) {
  const auto updates = state.integers.find(kUpdates);
  KF_CHECK(updates != state.integers.end(), Code::checkpoint, "the optimizer state lacks '{}': it was not saved by sophia_h", kUpdates);
  updates_ = updates->second;
  slots_.load(state, groups_);
}

}  // namespace kf
