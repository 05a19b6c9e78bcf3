#pragma once
// Optimizers move the fp32 masters of parameter groups by the gradients of this step.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/parameter.h"

namespace kf {

class Group;

namespace config {
struct OptimizerConfig;
}

/// Parameters that share a weight decay. Norms and biases are in a group without decay.
struct ParamGroup {
  ParameterList parameters;
  double weight_decay = 0;
  bool decays = false;  // whether its members are those that decay, also where weight_decay is 0
};

/// What an optimizer must find again after a restart.
struct OptimizerState {
  std::map<std::string, at::Tensor> tensors;     // "exp_avg.layers.0.attention.q_proj.weight"
  std::map<std::string, std::int64_t> integers;  // "step"
  std::map<std::string, double> reals;           // e.g. the sum of averaging weights
  bool owned = false;                            // to be loaded: the tensors are nobody else's and may be kept instead of copied
  bool partial = false;                          // to be loaded: a weight of which a slot is missing or has another shape begins anew
};

/// An estimate of the diagonal of the Hessian of a step's loss: one fp32 tensor a weight that has a gradient, by name.
using Curvature = std::map<std::string, at::Tensor>;

/// What an update is told besides its learning rate: 0-dim fp32 on the weights' device, or undefined for 1. Nobody waits for them.
struct UpdateTerms {
  at::Tensor factor;  // of the gradients: what clips them by their norm
  at::Tensor ok;      // where it is 0, neither weights nor state move, whatever the gradients hold
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update with `lr` (schedule applied). Parameters without a gradient are left alone. Reads the gradients, changes
  /// `Parameter::master`; the caller publishes and clears. Where it writes `Parameter::value`, too, it says so (`value_written`).
  virtual void step(double lr) = 0;
  /// Whether `step_with` is there for a factor, and for a verdict.
  virtual bool takes_factor() const { return false; }
  virtual bool takes_verdict() const { return false; }
  /// The same update with these terms. It may multiply the gradients in place.
  virtual void step_with(double lr, const UpdateTerms& terms);
  /// State tensors are the live ones, not copies, but for fp32 copies of what is kept in 8 bits.
  virtual OptimizerState state() const = 0;
  /// Throws Code::checkpoint naming what is missing or has another shape.
  virtual void load(const OptimizerState& state) = 0;
  /// What of a weight must lie on one rank together: nothing more than single elements, or all of it (norms, matrices).
  enum class Needs : std::int8_t { elements, whole };
  virtual Needs needs(const Parameter& /*weight*/) const { return Needs::whole; }
  /// Weights lie on these ranks in parts from now on: sums over all weights are taken over them.
  virtual void add_over(Group& /*ranks*/) {}
  /// Methods of second order want an estimate of the loss's curvature before some updates: `take_curvature` is then called before `step`.
  virtual bool wants_curvature() const { return false; }
  virtual void take_curvature(const Curvature& /*curvature*/) {}
  /// Schedule-free methods swap the averaged weights in (true) for evaluation and checkpoints, and out again. Others do nothing.
  virtual void use_averages(bool /*on*/) {}
};

/// The averages, where the method has any, for as long as one exists: what evaluation and checkpoints show.
class WithAverages {
 public:
  explicit WithAverages(Optimizer& optimizer) : optimizer_(optimizer) { optimizer_.use_averages(true); }
  ~WithAverages() { optimizer_.use_averages(false); }
  WithAverages(const WithAverages&) = delete;
  WithAverages& operator=(const WithAverages&) = delete;

 private:
  Optimizer& optimizer_;
};

/// Two groups by the peer's rule: decay for more than one dimension and no "bias" in the name; norms and biases without.
std::vector<ParamGroup> decay_groups(const ParameterList& parameters, double weight_decay);
/// The same with optimizer.decay_default, decay_include and decay_exclude, in this order. Frozen weights are in neither. Throws
/// Code::config for a pattern that matches no weight.
std::vector<ParamGroup> decay_groups(const ParameterList& parameters, const config::OptimizerConfig& config);
/// "decay 0.1: 15 weights; none: a, b, c": for the log.
std::string describe_groups(const std::vector<ParamGroup>& groups);

}  // namespace kf
