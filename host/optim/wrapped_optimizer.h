#pragma once
// Optimizers around another one.

#include <memory>
#include <utility>

#include "optim/optimizer.h"

namespace kf {

/// Everything but `step` is the inner optimizer's until a derived class says otherwise. `takes_verdict` is not: whether an update ran ahead
/// counts would have to be known to what stands around it, too.
class WrappedOptimizer : public Optimizer {
 public:
  OptimizerState state() const override { return inner_->state(); }
  void load(const OptimizerState& state) override { inner_->load(state); }
  Needs needs(const Parameter& weight) const override { return inner_->needs(weight); }
  void add_over(Group& ranks) override { inner_->add_over(ranks); }
  bool wants_curvature() const override { return inner_->wants_curvature(); }
  void take_curvature(const Curvature& curvature) override { inner_->take_curvature(curvature); }
  void use_averages(bool on) override { inner_->use_averages(on); }

 protected:
  explicit WrappedOptimizer(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}
  Optimizer& inner() const { return *inner_; }

 private:
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace kf
