#pragma once
// Sophia-H (Liu et al. 2023, "Sophia: A Scalable Stochastic Second-order Optimizer", algorithm 3 with the Hutchinson estimator).

#include "config/schema/own_fields.h"
#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct SophiaOptions {
  double beta1 = 0.96;
  double beta2 = 0.99;
  double eps = 1e-12;
  double gamma = 0.01;
  std::int64_t interval = 10;  // updates between two estimates
};

/// [optimizer.sophia_h]
const config::OwnFields<SophiaOptions>& sophia_fields();

/// m = beta1 m + (1 - beta1) g; h = beta2 h + (1 - beta2) estimate in the first of every `interval` updates;
/// p -= lr weight_decay p; p -= lr clip(m / max(gamma h, eps), 1). A direction of no or negative curvature moves by its sign.
/// An estimate that never came (it was not finite) leaves h as it was.
class Sophia final : public Optimizer {
 public:
  Sophia(std::vector<ParamGroup> groups, const SophiaOptions& options);
  Needs needs(const Parameter& /*weight*/) const override { return Needs::elements; }

  void step(double lr) override;
  bool wants_curvature() const override { return updates_ % options_.interval == 0; }
  void take_curvature(const Curvature& curvature) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  SophiaOptions options_;
  std::vector<ParamGroup> groups_;
  Slots slots_;  // exp_avg, hessian
  std::int64_t updates_ = 0;
};

}  // namespace kf
