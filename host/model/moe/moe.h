#pragma once
// Mixture of experts in place of a feed-forward layer (Shazeer et al. 2017): y = sum over the k chosen experts of weight * expert(x), plus
// the shared experts, which every token visits (Dai et al. 2024, DeepSeekMoE).

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "model/forward.h"
#include "model/layer/linear.h"
#include "model/layer/mlp.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/moe/experts.h"
#include "model/moe/router.h"

namespace kf {

class World;
struct PartArgs;
struct Place;

struct MoeOptions {
  std::int64_t layer = 0;      // index of the block
  std::int64_t experts = 0;    // E
  double capacity_factor = 0;  // 0 drops nothing
  bool gradient_scale = false;
  bool weigh_input = false;
  double z_weight = 0;
  const World* world = nullptr;  // with whom a step's tokens are shared; null: one rank
};

/// What stands around the experts of a layer.
struct MoeMembers {
  std::shared_ptr<Router> router;
  std::shared_ptr<Experts> experts;
  std::vector<std::shared_ptr<Mlp>> shared;
  std::shared_ptr<Linear> shared_gate;  // (1, C), null without model.moe_shared_gate
  std::shared_ptr<Norm> input_norm;     // of what routed experts get, not of what the router reads; null for none
  std::shared_ptr<Linear> down, up;     // (d, C) and (C, d) around routed experts, null without model.moe_input_dim
  TensorRanks ranks = {};
};

class MoeLayer final : public Mlp {
 public:
  MoeLayer(const MoeOptions& options, MoeMembers members);
  /// Leaves an ExpertsRecord in the results of the context.
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;

  const MoeOptions& options() const { return options_; }
  Router& router() const { return *members_.router; }

 private:
  void drop(Dispatch& dispatch, std::int64_t length, const ForwardContext& context) const;
  at::Tensor gradient_factors(const at::Tensor& own_counts) const;  // (E)
  bool shares_tokens() const;

  /// All tokens, (B, T, C) or (N, C): for what ranks along tp compute alike, and for what they divide.
  struct Tokens {
    at::Tensor same, entered;
  };
  /// Results of the one kind and of the other: (N, C), undefined for none.
  struct Sums {
    at::Tensor same, share;
    void add(bool divided, const at::Tensor& y);
  };
  bool any_is_divided() const;  // whether there is something that ranks divide,
  bool divides_shared() const;  // and whether the shared experts give shares
  Sums run(const Tokens& x, const ForwardContext& context) const;
  void add_routed(Sums& sums, const Tokens& tokens, const Dispatch& dispatch, const ForwardContext& context) const;
  void add_shared(Sums& sums, const Tokens& tokens, const ForwardContext& context) const;

  MoeOptions options_;
  MoeMembers members_;
};

/// By the settings, for the block at `place`; with a norm of what the experts get where a dense layer stands beside them.
std::shared_ptr<MoeLayer> make_moe(const PartArgs& args, const Place& place);

}  // namespace kf
