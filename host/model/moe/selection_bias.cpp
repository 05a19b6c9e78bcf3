#include "model/moe/selection_bias.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kf {
namespace {

constexpr double kEmaStep = 0.01;

ParameterPtr as_buffer(ParameterPtr parameter, bool counted) {
  parameter->trainable = false;
  parameter->buffer = true;
  parameter->counted = counted;
  return parameter;
}

}  // namespace

SelectionBias::SelectionBias(const SelectionBiasOptions& options)
    : options_(options), bias_(as_buffer(add_parameter("expert_bias", {options.experts}, Init::zeros(), Role::vector), true)) {
  if (options.rule == SelectionBiasOptions::Rule::ema) {
    const Init even = Init::constant(1.0 / static_cast<double>(options.experts));
    ema_ = as_buffer(add_parameter("expert_ema", {options.experts}, even, Role::vector), false);
  }
}

double SelectionBias::rate(double progress) const {
  switch (options_.schedule) {
    case SelectionBiasOptions::Schedule::constant: break;
    case SelectionBiasOptions::Schedule::cosine_decay: return options_.rate * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case SelectionBiasOptions::Schedule::linear_warmup: return options_.rate * std::min(1.0, 10 * progress);
  }
  return options_.rate;
}

void SelectionBias::move(const at::Tensor& counts, double progress) {
  const at::NoGradGuard no_grad;
  const at::Tensor load = counts.to(at::kFloat);
  if (ema_ == nullptr) {
    bias_->master.add_(at::sign(load.mean() - load), rate(progress));
    return;
  }
  const at::Tensor any = load.sum().gt(0);  // without a token there is nothing to learn from
  ema_->master.add_((load / (load.sum() + 1e-8) - ema_->master) * any, kEmaStep);
  bias_->master.add_((1.0 / static_cast<double>(options_.experts) - ema_->master) * any, rate(progress));
}

}  // namespace kf
