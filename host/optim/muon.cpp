#include "optim/muon.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace kf {
namespace {

/// The groups with the parameters that Muon takes (or leaves) alone.
std::vector<ParamGroup> select(const std::vector<ParamGroup>& groups, bool by_shape, bool taken) {
  std::vector<ParamGroup> out;
  for (const ParamGroup& group : groups) {
    ParamGroup kept{{}, group.weight_decay};
    std::copy_if(group.parameters.begin(), group.parameters.end(), std::back_inserter(kept.parameters),
                 [&](const ParameterPtr& parameter) { return muon_takes(*parameter, by_shape) == taken; });
    out.push_back(std::move(kept));
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

Muon::Muon(std::vector<ParamGroup> groups, const MuonOptions& options)
    : groups_(select(groups, options.by_shape, true)),
      options_(options),
      slots_({{"momentum", Slots::Start::zeros}}),
      adam_(select(groups, options.by_shape, false), options.adam) {}

void Muon::update(const Parameter& parameter, double lr, double weight_decay) {
  const at::Tensor gradient = parameter.gradient();
  at::Tensor& momentum = slots_.of(parameter)[0];
  momentum.mul_(options_.momentum).add_(gradient);
  const at::Tensor nesterov = gradient + options_.momentum * momentum;
  // By role a stack of experts is one matrix each; by shape the trailing dims are one.
  const bool stack = !options_.by_shape && nesterov.dim() == 3;
  const at::Tensor matrix = stack ? nesterov : nesterov.flatten(1);
  const double rows = static_cast<double>(matrix.size(-2));
  const double columns = static_cast<double>(matrix.size(-1));
  const at::Tensor direction = newton_schulz(matrix, options_.ns_steps).view_as(nesterov) * std::sqrt(std::max(1.0, rows / columns));
  parameter.master.detach().mul_(1 - lr * weight_decay).add_(direction, -lr);
}

void Muon::step(double lr) {
  const at::NoGradGuard no_grad;
  for (const ParamGroup& group : groups_) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (parameter->gradient().defined()) {
        update(*parameter, lr, group.weight_decay);
      }
    }
  }
  adam_.step(options_.adam_lr * (lr / options_.lr));
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
