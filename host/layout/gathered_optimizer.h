#pragma once
// Optimizers that need a whole matrix (muon, soap, norms of a weight), where tensor parallelism divides it.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/model.h"
#include "optim/wrapped_optimizer.h"
#include "parallel/world.h"

namespace kf {

/// One rank along tp updates such a weight: before a step its parts and their gradients come together there, afterwards the parts go back.
/// The largest weight first, each to the rank that has least (Graham 1969). The inner optimizer sees whole weights where they are updated,
/// and no gradient elsewhere; its state of them lies whole on that rank (Parameter::gathered).
class GatheredOptimizer final : public WrappedOptimizer {
 public:
  /// `weights`: those with a cut along tp that the inner optimizer needs whole, in the same order on all ranks.
  GatheredOptimizer(std::unique_ptr<Optimizer> inner, ParameterList weights, Group& tp);

  void step(double lr) override;
  void load(const OptimizerState& state) override;

 private:
  /// A weight's own tensors, while the whole ones are in their place.
  struct Put {
    at::Tensor master, gradient;
  };
  ParameterList with_gradient() const;
  Put gather(Parameter& weight) const;
  void put_back(Parameter& weight, const Put& own, std::int64_t owner) const;

  ParameterList weights_;
  std::map<const Parameter*, std::int64_t> owners_;  // ranks along tp
  Group& tp_;
};

/// `optimizer` itself where it needs no weight whole that tp divides. Behind `parallelize`, before the weights have storage. Throws
/// Code::config for one that then wants curvature, too: that comes in parts.
std::unique_ptr<Optimizer> gathered_where_needed(std::unique_ptr<Optimizer> optimizer, Model& model, const World& world);

}  // namespace kf
