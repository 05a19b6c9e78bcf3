#pragma once
// What a model counts over the micro-batches of a step, beside its result.

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace kf {

class Group;
struct ForwardResults;

/// The auxiliary terms of a forward (mixture of experts), means over its tokens, summed over the layers; undefined tensors where there are
/// none.
struct AuxLosses {
  at::Tensor balance;   // weighted by model.moe_aux_loss_weight, or by model.moe_sequence_aux_loss_weight (sigmoid scores)
  at::Tensor router_z;  // weighted by model.moe_router_z_loss_weight
};

/// `data`: ranks that share the loss of a step, for what is counted over all of its tokens; null: this rank alone.
class StepBook {
 public:
  virtual ~StepBook() = default;
  /// Of a forward that left `results`, which afterwards hold the losses as they are over all of `data`.
  virtual AuxLosses losses(ForwardResults& results, Group* data) const = 0;
  /// After the backward of a training micro-batch: what its forward counted joins the step.
  virtual void end_micro(const ForwardResults& results) = 0;
  /// After the last micro-batch: rules that are not gradients move their buffers (selection biases of routers), once, and only when the
  /// optimizer has moved the weights. `progress` = completed updates / all updates of the run, in [0, 1).
  virtual void end_step(bool updated, double progress, Group* data) = 0;
  /// Whether `end_step` must know if the optimizer has moved the weights.
  virtual bool follows_updates() const = 0;
  /// Numbers about the last step for its row of metrics ("moe/aux_loss"); waits for the device.
  virtual std::vector<std::pair<std::string, double>> metrics() const = 0;
};

}  // namespace kf
