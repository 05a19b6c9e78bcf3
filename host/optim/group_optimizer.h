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

}  // namespace kf
