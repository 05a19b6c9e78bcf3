#pragma once
// Muon (Jordan et al. 2024): Nesterov momentum, orthogonalised by a Newton-Schulz iteration, for the hidden matrices; AdamW for the rest.

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "optim/adamw.h"
#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf {

struct MuonOptions {
  double momentum = 0.95;
  std::int64_t ns_steps = 5;
  bool by_shape = false;  // the peer's rule instead of roles, see muon_takes
  bool nesterov = true;
  bool to_rms =
      false;  // scale updates to the RMS of AdamW's, rms sqrt(max(rows, columns)) (Liu et al. 2025), not by sqrt(max(1, rows / columns))
  double rms = 0.2;
  std::optional<double> weight_decay;  // of the orthogonalised matrices that decay; unset takes their group's
  std::vector<std::string> exclude;    // name patterns of matrices left to AdamW; one that matches none throws Code::config
  double lr = 0;                       // optimizer.lr: the AdamW part follows the schedule through the ratio to it
  double adam_lr = 0;                  // peak rate of the AdamW part
  AdamWOptions adam;                   // its kernels are those of the whole update
};

/// X / (|X|_F + 1e-7), then n times X <- a X + (b G + c G^2) X with G = X X^T, in fp32; pushes the singular values to about 1.
/// x is (m, n), or a stack (E, m, n) of matrices, each on its own. Tall ones are transposed meanwhile.
at::Tensor newton_schulz(const at::Tensor& x, std::int64_t steps);

/// By role (default): hidden matrices, 3-D stacks per matrix. By shape: at least two dims and sides, trailing dims flattened, within 1:10.
bool muon_takes(const Parameter& parameter, bool by_shape);

class Muon final : public Optimizer {
 public:
  Muon(const std::vector<ParamGroup>& groups, const MuonOptions& options);
  /// The matrices that it orthogonalises are whole.
  Needs needs(const Parameter& weight) const override;
  void step(double lr) override { step_with(lr, {}); }
  bool takes_factor() const override { return adam_.takes_factor(); }
  void step_with(double lr, const UpdateTerms& terms) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  /// `clip`: the factor of the gradient, undefined for 1.
  void update(Parameter& parameter, double lr, double weight_decay, const at::Tensor& clip);
  double scale(double rows, double columns) const;

  std::vector<ParamGroup> groups_;  // of the orthogonalised part
  MuonOptions options_;
  Slots slots_;  // momentum
  AdamW adam_;
};

}  // namespace kf
