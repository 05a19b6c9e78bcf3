#include "optim/averaging.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/weight_unit.h"

namespace kf {
namespace {

constexpr const char* kUpdates = "average_updates";
constexpr const char* kWeightSum = "average_weight_sum";

std::vector<at::Tensor> masters_of(const ParameterList& parameters) {
  std::vector<at::Tensor> out;
  for (const ParameterPtr& parameter : parameters) {
    out.push_back(parameter->master.detach());
  }
  return out;
}

}  // namespace

Averaged::Averaged(std::unique_ptr<Optimizer> inner, const ParameterList& parameters, const config::AveragingConfig& config)
    : WrappedOptimizer(std::move(inner)), config_(config) {
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(parameters_), [](const ParameterPtr& p) { return p->trainable; });
  start();
}

void Averaged::start() {
  averages_.clear();
  for (const at::Tensor& master : masters_of(parameters_)) {
    averages_.push_back(master.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true));
  }
}

double Averaged::share() {
  if (config_.type == "ema") {
    return 1 - config_.beta;
  }
  const double past = static_cast<double>(updates_ - config_.switch_step) / static_cast<double>(config_.decay_steps);
  const double weight = past < 0 ? 1 - config_.beta : 1 - std::sqrt(std::min(1.0, past));
  weight_sum_ += weight;
  return weight_sum_ > 0 ? weight / weight_sum_ : 0;
}

void Averaged::step(double lr) {
  const at::NoGradGuard no_grad;
  if (updates_ == 0) {
    start();  // the weights may have been loaded since construction
  }
  inner().step(lr);
  const double part = share();
  ++updates_;
  const std::vector<at::Tensor> masters = masters_of(parameters_);
  for (std::size_t i = 0; i < masters.size(); ++i) {
    averages_[i].lerp_(masters[i].to(at::kFloat), part);
  }
}

void Averaged::swap(bool on) {
  KF_CHECK(on == raw_.empty(), Code::other, "the running average is swapped {} twice", on ? "in" : "out");
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> masters = masters_of(parameters_);
  for (std::size_t i = 0; i < masters.size(); ++i) {
    if (on) {
      raw_.push_back(masters[i].clone());
    }
    masters[i].copy_(on ? averages_[i] : raw_[i]);
  }
  publish(parameters_);
  if (!on) {
    raw_.clear();
  }
}

OptimizerState Averaged::state() const {
  OptimizerState state = inner().state();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.tensors[kAveragePrefix + parameters_[i]->name] = averages_[i];
  }
  state.integers[kUpdates] = updates_;
  state.reals[kWeightSum] = weight_sum_;
  return state;
}

void Averaged::load(const OptimizerState& state) {
  inner().load(state);
  const auto updates = state.integers.find(kUpdates);
  const auto sum = state.reals.find(kWeightSum);
  KF_CHECK(
      updates != state.integers.end() && sum != state.reals.end(), Code::checkpoint,
      "the checkpoint holds no running average of the weights (averaging.type = \"{}\"); use checkpoint.init_from, or averaging.type = "
      "\"none\"",
      config_.type);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string name = kAveragePrefix + parameters_[i]->name;
    const auto found = state.tensors.find(name);
    if (parameters_[i]->part_numel() == 0) {
      continue;  // another rank's
    }
    KF_CHECK(found != state.tensors.end() && found->second.sizes() == averages_[i].sizes(), Code::checkpoint,
             "the optimizer state lacks '{}', or it has another shape", name);
    const bool alike = found->second.scalar_type() == averages_[i].scalar_type() && found->second.device() == averages_[i].device();
    state.owned&& alike ? void(averages_[i] = found->second) : void(averages_[i].copy_(found->second));
  }
  updates_ = updates->second;
  weight_sum_ = sum->second;
}

}  // namespace kf
