#pragma once
// PSGD with Kronecker factors (Li 2018, "Preconditioned Stochastic Gradient Descent"; the whitening form of Pooladzandi and Li 2024).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/schema/own_fields.h"
#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct KronOptions {
  double momentum = 0.9;
  double preconditioner_lr = 0.1;
  std::int64_t max_dim = 8192;  // longer sides have a diagonal factor
  std::int64_t seed = 42;       // of the probes
  /// Probes in place of drawn ones, for tests: (weight, number of its update) -> a tensor of the weight's shape.
  std::function<at::Tensor(const Parameter&, std::int64_t)> probe = {};
};

/// [optimizer.kron]
const config::OwnFields<KronOptions>& kron_fields();

/// m = momentum m + (1 - momentum) g, corrected for its bias: M. The factors, upper triangles Q_l (m, m) and Q_r (n, n), fit M's
/// whitening: with A = Q_l M Q_r^T, a normal V and B = Q_l^-T V Q_r^-1, Q_l -= mu triu(A A^T - B B^T) / |A A^T + B B^T| Q_l, and Q_r alike
/// by A^T A and B^T B; |.| is a bound of the norm. Updates get rarer: every step up to 500, then by exp(-0.001 (step - 500)) down to 3 %.
/// u = Q_l^T Q_l M Q_r^T Q_r, scaled down to a root mean square of 1.1; p -= lr (u + weight_decay p), vectors without decay. Vectors and
/// sides longer than max_dim have diagonal factors. Every matrix or vector of a stack has its own. Every hundredth update of the factors
/// balances their sizes (the authors draw that, too).
class Kron final : public Optimizer {
 public:
  Kron(std::vector<ParamGroup> groups, KronOptions options);
  void step(double lr) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  bool due();  // whether the factors move in this step
  void update(const Parameter& parameter, bool moves, double lr, double weight_decay);
  at::Tensor probe(const Parameter& parameter, const at::Tensor& like) const;

  std::vector<ParamGroup> groups_;
  KronOptions options_;
  Slots slots_;             // momentum, left, right
  std::int64_t step_ = 0;   // updates
  std::int64_t since_ = 0;  // updates since the factors moved
  std::int64_t moved_ = 0;  // how often they did
};

}  // namespace kf
