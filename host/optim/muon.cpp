#include "optim/muon.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/name_pattern.h"
#include "kernels/muon/muon.h"
#include "optim/values.h"

namespace kf {
namespace {

/// The groups split in two: what Muon takes, and what it leaves to AdamW.
struct Shares {
  std::vector<ParamGroup> taken;
  std::vector<ParamGroup> left;
};

Shares share(const std::vector<ParamGroup>& groups, const MuonOptions& options) {
  std::vector<std::string> names;  // of what could be taken
  for (const ParamGroup& group : groups) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (muon_takes(*parameter, options.by_shape)) {
        names.push_back(parameter->name);
      }
    }
  }
  const std::vector<bool> excluded = match_names(options.exclude, names, "optimizer.muon_exclude");
  Shares out;
  std::size_t at = 0;
  for (const ParamGroup& group : groups) {
    const double decay = options.weight_decay && group.decays ? *options.weight_decay : group.weight_decay;
    out.taken.push_back({{}, decay, group.decays});
    out.left.push_back({{}, group.weight_decay, group.decays});
    for (const ParameterPtr& parameter : group.parameters) {
      const bool taken = muon_takes(*parameter, options.by_shape) && !excluded[at++];
      (taken ? out.taken : out.left).back().parameters.push_back(parameter);
    }
  }
  return out;
}

}  // namespace

at::Tensor newton_schulz(const at::Tensor& x, std::int64_t steps) {
  constexpr double a = 3.4445;
  constexpr double b = -4.7750;
  constexpr double c = 2.0315;
  const bool tall = x.size(-2) > x.size(-1);
  at::Tensor y = tall ? x.mT() : x;
  y = y / (at::linalg_vector_norm(y, 2, {-2, -1}, /*keepdim=*/true) + 1e-7);
  for (std::int64_t i = 0; i < steps; ++i) {
    const at::Tensor gram = y.matmul(y.mT());
    const at::Tensor polynomial = b * gram + c * gram.matmul(gram);
    y = a * y + polynomial.matmul(y);
  }
  return tall ? y.mT() : y;
}

bool muon_takes(const Parameter& parameter, bool by_shape) {
  if (parameter.shape.size() < 2) {
    return false;
  }
  if (!by_shape) {
    return parameter.role == Role::hidden;
  }
  const std::int64_t rows = parameter.shape.front();
  const std::int64_t columns = parameter.numel() / std::max<std::int64_t>(rows, 1);
  return static_cast<double>(std::max(rows, columns)) / static_cast<double>(std::max<std::int64_t>(std::min(rows, columns), 1)) <= 10;
}

Muon::Muon(const std::vector<ParamGroup>& groups, const MuonOptions& options)
    : groups_(share(groups, options).taken), options_(options), slots_({{"momentum"}}), adam_(share(groups, options).left, options.adam) {}

double Muon::scale(double rows, double columns) const {
  return options_.to_rms ? options_.rms * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
}

void Muon::update(Parameter& parameter, double lr, double weight_decay, const at::Tensor& clip) {
  const Kernels& kernels = *options_.adam.kernels;
  const at::Tensor ahead =
      kernels.muon_momentum({parameter.stored_gradient(), slots_.of(parameter)[0], clip, options_.momentum, options_.nesterov});
  // By role a stack of experts is one matrix each; by shape the trailing dims are one.
  const bool stack = !options_.by_shape && ahead.dim() == 3;
  const at::Tensor matrix = stack ? ahead : ahead.flatten(1);
  const double factor = scale(static_cast<double>(matrix.size(-2)), static_cast<double>(matrix.size(-1)));
  const at::Tensor direction = newton_schulz(matrix, options_.ns_steps).view_as(ahead);
  const at::Tensor value = value_beside(parameter);
  kernels.muon_move({parameter.master.detach(), direction, value, 1 - lr * weight_decay, lr * factor});
  if (value.defined()) {
    parameter.value_written();
  }
}

Optimizer::Needs Muon::needs(const Parameter& weight) const {
  const auto takes = [&weight](const ParamGroup& group) {
    return std::any_of(group.parameters.begin(), group.parameters.end(), [&](const ParameterPtr& one) { return one.get() == &weight; });
  };
  return std::any_of(groups_.begin(), groups_.end(), takes) ? Needs::whole : Needs::elements;
}

void Muon::step_with(double lr, const UpdateTerms& terms) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (parameter->stored_gradient().defined()) {
        update(*parameter, lr, group.weight_decay, terms.factor);
      }
    }
  }
  adam_.step_with(options_.adam_lr * (lr / options_.lr), terms);
}

OptimizerState Muon::state() const {
  OptimizerState state = adam_.state();
  slots_.save(state);
  return state;
}

void Muon::load(const OptimizerState& state) {
  slots_.load(state, groups_);
  adam_.load(state);
}

}  // namespace kf
