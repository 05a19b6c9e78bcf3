#pragma once
// A model of three weights, one of them under two names, and an optimizer with every kind of state.

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <limits>

#include "model/model.h"
#include "optim/optimizer.h"

namespace kf::test {

class FakeModel final : public Model {
 public:
  explicit FakeModel(std::int64_t width = 3, bool tied = true, at::ScalarType compute = at::kFloat) {
    embedding_ = add_parameter("embedding.weight", {4, width}, Init::normal(1));
    add_parameter("norm.weight", {width}, Init::ones());
    if (tied) {
      share_parameter("head.weight", embedding_);
    } else {
      add_parameter("head.weight", {4, width}, Init::normal(1));
    }
    for (const ParameterPtr& parameter : parameters()) {
      parameter->master = at::zeros(parameter->shape);
      parameter->value = compute == at::kFloat ? parameter->master : parameter->master.to(compute);
      parameter->value.requires_grad_(true);
    }
  }

  void fill(double value) {
    const at::NoGradGuard no_grad;
    for (const ParameterPtr& parameter : parameters()) {
      parameter->master.fill_(value);
      parameter->publish();
    }
  }
  /// The value of every weight, or NaN when they differ.
  double filled() {
    const double value = parameters().front()->master.view(-1)[0].item<double>();
    for (const ParameterPtr& parameter : parameters()) {
      if (!parameter->master.eq(value).all().item<bool>() || !parameter->value.eq(value).all().item<bool>()) {
        return std::numeric_limits<double>::quiet_NaN();
      }
    }
    return value;
  }

  at::Tensor forward(const at::Tensor& tokens, ForwardContext&) override { return tokens; }
  KvCache make_cache(std::int64_t, std::int64_t) override { return {}; }

 private:
  ParameterPtr embedding_;
};

class FakeOptimizer final : public Optimizer {
 public:
  explicit FakeOptimizer(std::string slot = "exp_avg") : slot_(std::move(slot)) {}

  void step(double lr) override {
    ++steps_;
    sum_ += lr;
    moment_ = moment_.defined() ? moment_.add(lr) : at::full({4, 3}, lr);
  }
  OptimizerState state() const override {
    OptimizerState state;
    if (moment_.defined()) {
      state.tensors[slot_ + ".embedding.weight"] = moment_;
    }
    state.integers["step"] = steps_;
    state.reals["sum"] = sum_;
    return state;
  }
  void load(const OptimizerState& state) override {
    const auto found = state.tensors.find(slot_ + ".embedding.weight");
    moment_ = found == state.tensors.end() ? at::Tensor() : found->second;
    steps_ = state.integers.at("step");
    sum_ = state.reals.at("sum");
  }

  std::int64_t steps_ = 0;
  double sum_ = 0;
  at::Tensor moment_;

 private:
  std::string slot_;
};

}  // namespace kf::test
