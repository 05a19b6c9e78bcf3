#pragma once
// Scion (Pethick et al. 2025, "Training Deep Learning Models with Norm-Constrained LMOs", algorithm 1): steps to the border of norm balls.

#include "config/schema/own_fields.h"
#include "optim/group_optimizer.h"

namespace kf {

struct ScionOptions {
  double beta1 = 0.9;          // 1 - alpha
  std::int64_t ns_steps = 5;   // see newton_schulz
  double hidden_radius = 50;   // rho of the hidden matrices
  double other_radius = 3000;  // rho of embedding, head and vectors
};

/// [optimizer.scion]
const config::OwnFields<ScionOptions>& scion_fields();

/// m = beta1 m + (1 - beta1) g; p -= lr rho d(m), where d is sqrt(out / in) U V^T of a hidden matrix (each of a stack), sign(m) / in of the
/// head, sign(m) of the rest. Unconstrained; with optimizer.weight_decay = 1 the weights stay inside the balls (the constrained form).
class Scion final : public GroupOptimizer {
 public:
  Scion(std::vector<ParamGroup> groups, const ScionOptions& options);

 private:
  void update(TensorLists& lists, double lr, double weight_decay) override;

  ScionOptions options_;
};

}  // namespace kf
