#include "model/block.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "model/moe.h"
#include "model/observe.h"
#include "model/parts.h"
#include "registry/registries.h"

namespace kf {
namespace {

at::Tensor normed(const std::shared_ptr<Norm>& norm, const at::Tensor& x) { return norm ? norm->forward(x) : x; }

}  // namespace

void Block::scale_queries(const at::Tensor& /*factors*/) const {
  fail(Code::config, "optimizer.qk_clip cannot scale the queries of this block; use model.block = \"standard\", or leave qk_clip out");
}

KvCache::Layer Block::make_cache(std::int64_t /*batch*/, std::int64_t /*capacity*/, const at::Tensor& /*like*/) const {
  fail(Code::config, "this block keeps no keys and values, so the model cannot generate; use model.block = \"standard\"");
}

StandardBlock::StandardBlock(const PartArgs& args, const Place& place)
    : parallel_(args.config.model.norm_placement.starts_with("parallel")),
      shares_norm_(args.config.model.norm_placement == "parallel"),
      residual_scale_(args.config.model.residual_scale),
      drop_attention_(args.config.model.dropout_resid, args.config.train.seed, place.layer, "attention"),
      drop_mlp_(args.config.model.dropout_resid, args.config.train.seed, place.layer, "mlp"),
      recompute_(recompute_policy(args.config.train, place.layer)) {
  const std::string& placement = args.config.model.norm_placement;
  const bool before = placement != "post";
  const bool after = placement == "post" || placement == "sandwich";
  if (before) {
    attention_norm_ = add_child("attention_norm", make_norm(args, place));
  }
  attention_ = add_child("attention", make_attention(args, place));
  if (after) {
    attention_post_norm_ = add_child("attention_post_norm", make_norm(args, place));
  }
  if (before && !shares_norm_) {
    mlp_norm_ = add_child("mlp_norm", make_norm(args, place));
  }
  mlp_ = add_child("mlp", make_mlp(args, place));
  // Padding would take room at the experts, and the flash kernel of CPUs takes no mask.
  takes_padding_ = attention_->takes_padding() && args.config.model.moe_capacity_factor == 0 && args.config.model.sdpa_backend != "flash";
  if (after) {
    mlp_post_norm_ = add_child("mlp_post_norm", make_norm(args, place));
  }
}

at::Tensor StandardBlock::scaled(at::Tensor branch) const { return residual_scale_ == 1 ? branch : branch * residual_scale_; }

at::Tensor StandardBlock::attend(const at::Tensor& x, const ForwardContext& context) const {
  if (shares_norm_) {  // x is normed already
    return drop_attention_.apply(scaled(attention_->forward(x, context)), context, training());
  }
  const at::Tensor y = normed(attention_post_norm_, attention_->forward(normed(attention_norm_, x), context));
  return drop_attention_.apply(scaled(y), context, training());
}

at::Tensor StandardBlock::transform(const at::Tensor& x, const ForwardContext& context) const {
  const at::Tensor y = normed(mlp_post_norm_, mlp_->forward(normed(mlp_norm_, x)));
  return drop_mlp_.apply(scaled(y), context, training());
}

at::Tensor StandardBlock::attended(const at::Tensor& x, const ForwardContext& context) const {
  if (!recompute_.attention || !may_recompute(context, training())) {
    return attend(x, context);
  }
  return recompute({[this, context](const at::Tensor& in) { return attend(in, context); }, {}, recompute_.kept}, x);
}

at::Tensor StandardBlock::transformed(const at::Tensor& x, const ForwardContext& context) const {
  if (!recompute_.mlp || !may_recompute(context, training())) {
    return transform(x, context);
  }
  return recompute(
      {[this, context](const at::Tensor& in) { return transform(in, context); }, [this] { return side_terms(); }, recompute_.kept}, x);
}

at::Tensor StandardBlock::forward(const at::Tensor& x, const ForwardContext& context) const {
  if (parallel_) {
    const at::Tensor n = shares_norm_ ? attention_norm_->forward(x) : x;
    return observed(*this, x, x + attended(n, context) + transformed(n, context));
  }
  const at::Tensor h = x + attended(x, context);
  return observed(*this, x, h + transformed(h, context));
}

std::vector<at::Tensor*> StandardBlock::side_terms() const { return side_terms_below(*mlp_); }

KvCache::Layer StandardBlock::make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const {
  return attention_->make_cache(batch, capacity, like);
}

}  // namespace kf
