#pragma once
// Multi-head latent attention (DeepSeek V2, section 2.1): keys and values of all heads come from one narrow latent.

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/layer/attention.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/layer/rope.h"
#include "model/layer/score.h"
#include "model/layer/tensor_ranks.h"

namespace kf {

struct PartArgs;
struct Place;

/// q = W_q x, or W_qb norm(W_qa x); [c, k_rope] = W_kva x; [k_nope, v] = W_kvb norm(c) per head; k = [k_nope, rotated k_rope], the latter
/// one for all heads; scores over mla_nope_dim + mla_rope_dim components. A cache holds norm(c) and the rotated k_rope alone.
class LatentAttention final : public Attention {
 public:
  LatentAttention(const PartArgs& args, const Place& place);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;
  KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const override;
  bool has_cache() const override { return true; }
  bool takes_padding() const override { return true; }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override;

 private:
  /// A product and its norm that are computed between layers.
  void divide_rows(Linear& down, Norm& norm) const;
  /// What lies between layers -> (B, H, T, nope + rope), of this rank's heads.
  at::Tensor queries(const at::Tensor& x, const ForwardContext& context) const;

  TensorRanks ranks_;     // over whom heads are divided; the latents are made alike on all of them, each of its own rows
  std::int64_t n_heads_;  // of this rank
  std::int64_t nope_, rope_dim_, v_dim_, rank_;
  std::int64_t layer_;
  Mixer mixer_;
  std::shared_ptr<const Rope> rope_;       // null in layers without rotation
  std::shared_ptr<Linear> q_, q_a_, q_b_;  // q_ alone, or q_a_ and q_b_
  std::shared_ptr<Linear> kv_a_, kv_b_, o_;
  std::shared_ptr<Norm> q_a_norm_, kv_a_norm_;  // over the ranks
  ParameterPtr sinks_;                          // (H) or null
};

}  // namespace kf
