#pragma once
// Which experts a token visits, and how much each counts.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/module.h"

namespace kf {

/// What a router says about N tokens.
struct Routing {
  at::Tensor experts;  // (N, k) int64, the best first
  at::Tensor weights;  // (N, k) fp32, factors of the experts' outputs
  at::Tensor balance;  // 0-dim fp32, low where the load is even; undefined where the router has no such loss
  /// Where `balance` = factor sum_e f_e s_e with f the shares of the assignments: (E) fp32 s, means over the tokens, and that factor. Ranks
  /// that share a loss take the f of them all. Undefined where the loss is another, as one a sequence: it is of each rank's own tokens
  /// then.
  at::Tensor mean_scores;
  double balance_factor = 0;
  at::Tensor z;      // 0-dim fp32, mean over the tokens of logsumexp(logits)^2 (Zoph et al. 2022, equation 5); may be undefined
  at::Tensor extra;  // 0-dim fp32, further terms of the loss, weighted already; native routers have none
};

class Router : public Module {
 public:
  /// x (N, C) -> where its rows go. The losses are there in training only.
  virtual Routing route(const at::Tensor& x) const = 0;
  /// The same of N / length sequences, one after the other; for routers whose losses look at each sequence by itself.
  virtual Routing route_sequences(const at::Tensor& x, std::int64_t /*length*/) const { return route(x); }
  /// Factor of `Routing::balance` in the loss.
  virtual double balance_weight() const = 0;
  /// After an update with `counts` (E) assignments: selection biases move. `progress` as in Model::end_step.
  virtual void rebalance(const at::Tensor& /*counts*/, double /*progress*/) {}
};

/// Assignments per expert, (N, k) -> (E) int64, without a wait for the device.
at::Tensor count_assignments(const at::Tensor& experts, std::int64_t n_experts);

}  // namespace kf
