#pragma once
// What optimizers share that treat every weight of a group alike: state tensors, 16-bit storage, checkpoints.

#include <vector>

#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

class GroupOptimizer : public Optimizer {
 public:
  void step(double lr) final;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 protected:
  GroupOptimizer(std::vector<ParamGroup> groups, std::vector<Slots::Kind> kinds) : groups_(std::move(groups)), slots_(std::move(kinds)) {}

  /// Moves lists.masters, all of them fp32 and with a gradient; called without autograd, never with empty lists.
  virtual void update(TensorLists& lists, double lr, double weight_decay) = 0;

 private:
  std::vector<ParamGroup> groups_;
  Slots slots_;
};

/// p *= 1 - lr * weight_decay (decoupled, Loshchilov and Hutter 2019).
void decay_weights(std::vector<at::Tensor>& masters, double lr, double weight_decay);
/// 1 - beta^step, 0-dim double on the step's device: no wait for it, and fp32 would lose digits.
at::Tensor bias_correction(double beta, const at::Tensor& step);

}  // namespace kf
