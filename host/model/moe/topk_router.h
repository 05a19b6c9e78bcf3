#pragma once
// A linear gate, a score, and the k best: every native router.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "model/layer/place.h"
#include "model/moe/router.h"
#include "model/moe/selection_bias.h"

namespace kf {

class World;
struct PartArgs;
struct Place;

/// logits = x W^T (+ b); s = score(logits); experts = top-k of s + selection bias, inside the best groups where there are groups;
/// weights = s of the chosen, over their sum where `normalise` says so and k > 1, times `scale`. With k = 1 the score itself stays the
/// weight: divided by itself it would be 1, and the loss would teach the router nothing (Fedus et al. 2022, section 2.1).
struct TopKRouterOptions {
  enum class Score { softmax, sigmoid, sqrt_softplus };

  std::int64_t dim = 0;      // C
  std::int64_t experts = 0;  // E
  std::int64_t top_k = 0;    // k
  Score score = Score::softmax;
  bool normalise = true;
  double scale = 1;
  std::int64_t groups = 0;       // of E / groups neighbours; 0 = none
  std::int64_t topk_groups = 0;  // that a token may visit
  bool gate_bias = false;        // b, learned
  bool fp32 = false;             // the gate in fp32 instead of the compute type
  bool normed = false;           // x becomes RMS(x) * scale / sqrt(C), weights are multiplied by a number of the expert, both learned
  double eps = 1e-6;             // normed: of the RMS
  Init init;
  double balance_weight = 0;   // softmax: of E sum_e f_e P_e
  double sequence_weight = 0;  // other scores: already inside `Routing::balance`; 0 = they have none
  /// Whether that balance is the mean over sequences of each one's own (DeepSeek V3, equation 17, with scores that are not divided by their
  /// sum) instead of one over all tokens, which is not linear in them.
  bool by_sequence = false;
  std::optional<SelectionBiasOptions> bias;
  std::optional<std::uint64_t> random;  // seed of random experts, the same in every forward
  const World* world = nullptr;         // with whom a step's tokens are shared; null: one rank
};

class TopKRouter final : public Router {
 public:
  explicit TopKRouter(const TopKRouterOptions& options);
  Routing route(const at::Tensor& x) const override { return route_sequences(x, x.size(0)); }
  Routing route_sequences(const at::Tensor& x, std::int64_t length) const override;
  double balance_weight() const override;
  void rebalance(const at::Tensor& counts, double progress) override;

 private:
  at::Tensor read(const at::Tensor& x) const;                                    // (N, C): x, or normed
  at::Tensor logits(const at::Tensor& x) const;                                  // (N, C) -> (N, E) fp32
  at::Tensor scores(const at::Tensor& logits) const;                             // (N, E)
  at::Tensor choose(const at::Tensor& scores) const;                             // (N, E) -> (N, k) int64
  at::Tensor keep_best_groups(const at::Tensor& value) const;                    // (N, E), -inf outside
  at::Tensor mixing(const at::Tensor& scores, const at::Tensor& experts) const;  // (N, k)
  /// (N, E), (N, k) -> 0-dim: E sum_e f_e P_e with f the share of the assignments, P the mean score; the mean of those of N / length
  /// sequences where they count by themselves.
  void add_balance(Routing& routing, const at::Tensor& scores, std::int64_t length) const;
  at::Tensor balance_by_sequence(const at::Tensor& scores, const at::Tensor& experts, std::int64_t length) const;

  TopKRouterOptions options_;
  ParameterPtr gate_;                  // (E, C) "gate.weight"
  ParameterPtr gate_bias_;             // (E) "gate.bias"
  ParameterPtr scale_, expert_scale_;  // normed: (C) and (E)
  std::shared_ptr<SelectionBias> bias_;
};

/// The options of the native router `moe_router` of a job.
TopKRouterOptions topk_router_options(const PartArgs& args, const Place& place);

}  // namespace kf
