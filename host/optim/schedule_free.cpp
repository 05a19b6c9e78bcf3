#include "optim/schedule_free.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/weight_unit.h"

namespace kf {
namespace {

constexpr std::size_t kZ = 0;
constexpr std::size_t kX = 1;
constexpr std::size_t kV = 2;

}  // namespace

ScheduleFreeAdamW::ScheduleFreeAdamW(std::vector<ParamGroup> groups, const ScheduleFreeOptions& options)
    : groups_(std::move(groups)),
      options_(options),
      slots_({{"z", Slots::Start::parameter}, {"x", Slots::Start::parameter}, {"exp_avg_sq", Slots::Start::zeros}}) {}

void ScheduleFreeAdamW::step(double lr) {
  KF_CHECK(!averaged_, Code::other, "schedule_free_adamw: a step while the averages are swapped in");
  const at::NoGradGuard no_grad;
  const ScheduleFreeOptions& o = options_;
  ++step_;
  const double warm = o.warmup_steps > 0 ? std::min(1.0, static_cast<double>(step_) / static_cast<double>(o.warmup_steps)) : 1.0;
  const double rate = lr * warm;
  largest_lr_ = std::max(largest_lr_, rate);
  const double weight = largest_lr_ * largest_lr_;
  weight_sum_ += weight;
  const double share = weight_sum_ > 0 ? weight / weight_sum_ : 0;  // a step at rate 0 leaves the average alone
  const double correction = 1 - std::pow(o.beta2, static_cast<double>(step_));

  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_);
    if (lists.empty()) {
      continue;
    }
    std::vector<at::Tensor>& z = lists.slots[kZ];
    std::vector<at::Tensor>& x = lists.slots[kX];
    std::vector<at::Tensor>& v = lists.slots[kV];
    at::_foreach_mul_(v, o.beta2);
    at::_foreach_addcmul_(v, lists.gradients, lists.gradients, 1 - o.beta2);
    std::vector<at::Tensor> denominator = at::_foreach_div(v, correction);
    at::_foreach_sqrt_(denominator);
    at::_foreach_add_(denominator, o.eps);
    std::vector<at::Tensor> direction = at::_foreach_div(lists.gradients, denominator);
    at::_foreach_add_(direction, lists.masters, group.weight_decay);
    at::_foreach_add_(z, direction, -rate);
    at::_foreach_lerp_(x, z, share);
    at::_foreach_copy_(lists.masters, z);
    at::_foreach_lerp_(lists.masters, x, o.beta1);  // y = (1 - beta1) z + beta1 x
    lists.write_back();
  }
}

void ScheduleFreeAdamW::use_averages(bool on) {
  if (on == averaged_) {
    return;
  }
  averaged_ = on;
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (slots_.contains(*parameter)) {
        const std::vector<at::Tensor>& mine = slots_.of(*parameter);
        const at::Tensor master = parameter->master.detach();
        if (on) {
          master.copy_(mine[kX]);
        } else {
          master.copy_(mine[kZ].lerp(mine[kX], options_.beta1));  // as `step` has it, bit for bit; only then rounded to param_dtype
        }
      }
    }
  }
  ParameterList all;
  for (const ParamGroup& group : groups_) {
    all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  }
  publish(all);
}

OptimizerState ScheduleFreeAdamW::state() const {
  OptimizerState state;
  slots_.save(state);
  state.integers["step"] = step_;
  state.reals["largest_lr"] = largest_lr_;
  state.reals["weight_sum"] = weight_sum_;
  return state;
}

void ScheduleFreeAdamW::load(const OptimizerState& state) {
  const auto step = state.integers.find("step");
  const auto largest = state.reals.find("largest_lr");
  const auto sum = state.reals.find("weight_sum");
  KF_CHECK(step != state.integers.end() && largest != state.reals.end() && sum != state.reals.end(), Code::checkpoint,
           "the optimizer state lacks step, largest_lr or weight_sum: it is not one of schedule_free_adamw");
  slots_.load(state, groups_);
  step_ = step->second;
  largest_lr_ = largest->second;
  weight_sum_ = sum->second;
  // The checkpoint holds the averages; training goes on at y.
  averaged_ = true;
  use_averages(false);
}

}  // namespace kf
