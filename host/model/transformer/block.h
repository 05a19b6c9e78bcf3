#pragma once
// One layer of a transformer: the interface, and the block of attention and mlp with its norms.

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/layer/attention.h"
#include "model/layer/dropout.h"
#include "model/layer/linear.h"
#include "model/layer/mlp.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/layer/tensor_ranks.h"
#include "model/model.h"
#include "model/recompute/recompute.h"

namespace kf {

struct PartArgs;
struct Place;

/// The unit of recomputation, sharding and pipeline stages. Layers that use their input several times take an alias of it first: its
/// gradient is then added up inside the layer, in the same order whether the layer is recomputed on its own or not, to the last bit.
class Block : public Module {
 public:
  bool observable() const override { return true; }
  virtual at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const = 0;  // (B, T, C) -> (B, T, C)
  /// As of its attention; the default refuses.
  virtual void scale_queries(const at::Tensor& factors) const;
  /// An empty cache of this layer, as of its attention; the default refuses.
  virtual KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const;
  virtual bool has_cache() const { return false; }      // as of its attention
  virtual bool takes_padding() const { return false; }  // likewise
  virtual bool keeps_cache(std::int64_t /*length*/, std::int64_t /*longer*/) const { return true; }
};

/// h = x + branch(attention, x); h + branch(mlp, h), where branch(f, x) = drop(residual_scale * N2(f(N1(x)))) and model.norm_placement
/// says which norms there are: pre N1 (Llama), post N2 (OLMo 2), sandwich both (Gemma 2). parallel (GPT-J, Cohere) adds both branches of
/// one norm: x + branch(attention, N(x)) + branch(mlp, N(x)); parallel2 (GPT-NeoX) has a norm each, N1 and N2.
/// model.moe_beside_dense: mlp(N1(x)) becomes N3(mlp(N1(x))) + N5(experts(N4(x))), and the router reads x (Gemma 4).
/// model.attn_out_dim: one branch, x + drop(residual_scale * up(mlp(N2(attention(N1(x)))))). model.layer_scalar multiplies the result.
class StandardBlock final : public Block {
 public:
  StandardBlock(const PartArgs& args, const Place& place);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;
  void scale_queries(const at::Tensor& factors) const override { attention_->scale_queries(factors); }
  KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const override;
  bool has_cache() const override { return attention_->has_cache(); }
  bool takes_padding() const override { return takes_padding_; }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override { return attention_->keeps_cache(length, longer); }

 private:
  /// Of a whole hidden state, what is dropped of the rows here.
  at::Tensor dropped(const Dropout& dropout, const at::Tensor& branch, const ForwardContext& context) const;
  void add_special_parts(const PartArgs& args, const Place& inner);
  at::Tensor attend(const at::Tensor& x, const ForwardContext& context) const;  // a branch with its norms
  at::Tensor transform(const at::Tensor& x, const ForwardContext& context) const;
  at::Tensor fed_forward(const at::Tensor& x,
                         const ForwardContext& context) const;  // mlp_ with what stands beside it, and the norms of both
  at::Tensor behind_mlp(const at::Tensor& fed, const ForwardContext& context) const;  // the rest of that branch
  /// Whether x + branch and the norm of it are computed at once: nothing else reads it, and no branch begins with that norm in backward.
  bool norms_the_sum(const ForwardContext& context) const;
  at::Tensor scaled(const at::Tensor& branch) const;
  at::Tensor finished(const at::Tensor& y) const;  // the learned number
  /// The branches, made again in backward where the policy says so.
  at::Tensor attended(const at::Tensor& x, const ForwardContext& context) const;
  at::Tensor transformed(const at::Tensor& x, const ForwardContext& context) const;

  TensorRanks ranks_;
  std::shared_ptr<Norm> attention_norm_, attention_post_norm_;  // null where the placement has none
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<Norm> mlp_norm_, mlp_post_norm_;
  std::shared_ptr<Mlp> mlp_;
  std::shared_ptr<Norm> dense_post_norm_, experts_post_norm_;  // with `beside_`
  std::shared_ptr<Mlp> beside_;                                // experts beside a dense mlp_, or null
  std::shared_ptr<Linear> up_;                                 // (C, attn_out_dim) or null
  ParameterPtr scalar_;                                        // (1) or null
  bool parallel_ = false;                                      // both branches read x,
  bool shares_norm_ = false;                                   // through one norm
  bool takes_padding_ = false;
  double residual_scale_ = 1;
  Dropout drop_attention_, drop_mlp_;
  RecomputePolicy recompute_;  // of branches; whole blocks are the model's business
};

}  // namespace kf
