#pragma once
// SOAP (Vyas et al. 2024, "SOAP: Improving and Stabilizing Shampoo using Adam", algorithm 3): Adam in the eigenbasis of Shampoo's
// preconditioner.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/schema/own_fields.h"
#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct SoapOptions {
  double beta1 = 0.95;
  double beta2 = 0.95;  // of the second moment and of the statistics
  double eps = 1e-8;
  std::int64_t frequency = 10;   // updates between two refreshes of the bases
  std::int64_t max_dim = 10000;  // longer sides keep the identity as their basis
};

/// [optimizer.soap]
const config::OwnFields<SoapOptions>& soap_fields();

/// Of a matrix G (m, n), each of a stack: L = beta2 L + (1 - beta2) G G^T and R of G^T G; their eigenvectors Q_L and Q_R, first by an
/// eigendecomposition, later by one step of power iteration and a QR factorisation, sorted by size. With G' = Q_L^T G Q_R and M' alike:
/// V = beta2 V + (1 - beta2) G'^2; p -= lr corrections Q_L (M' / (sqrt(V) + eps)) Q_R^T; then p -= lr weight_decay p. A weight's first
/// gradient fills L and R only. Vectors take Adam.
class Soap final : public Optimizer {
 public:
  Soap(std::vector<ParamGroup> groups, const SoapOptions& options);
  void step(double lr) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  void update(const Parameter& parameter, std::int64_t step, double lr, double weight_decay);
  void refresh(std::vector<at::Tensor>& mine, const at::Tensor& gradient, std::int64_t step) const;

  std::vector<ParamGroup> groups_;
  SoapOptions options_;
  Slots slots_;                                // exp_avg, exp_avg_sq, left, right, left_basis, right_basis
  std::map<std::string, std::int64_t> steps_;  // gradients that a weight has seen
};

}  // namespace kf
