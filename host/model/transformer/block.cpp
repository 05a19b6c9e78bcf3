#include "model/transformer/block.h"

#include <ATen/ATen.h>

#include "config/plan/derived.h"
#include "core/error.h"
#include "core/trace.h"
#include "model/init.h"
#include "model/moe/moe.h"
#include "model/observe.h"
#include "model/transformer/parts.h"
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
    : ranks_(args),
      parallel_(args.config.model.norm_placement.starts_with("parallel")),
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
  Place inner = place;  // behind attention
  inner.dim = config::branch_dim(args.config.model);
  if (before && !shares_norm_) {
    mlp_norm_ = add_child("mlp_norm", make_norm(args, inner));
  }
  mlp_ = add_child("mlp", make_mlp(args, inner));
  add_special_parts(args, inner);
  // Padding would take room at the experts, and the flash kernel of CPUs takes no mask.
  takes_padding_ = attention_->takes_padding() && args.config.model.moe_capacity_factor == 0 && args.config.model.sdpa_backend != "flash";
  if (after) {
    mlp_post_norm_ = add_child("mlp_post_norm", make_norm(args, place));
  }
}

void StandardBlock::add_special_parts(const PartArgs& args, const Place& inner) {
  const config::ModelConfig& m = args.config.model;
  if (m.moe_beside_dense && config::is_moe_layer(m, inner.layer)) {
    dense_post_norm_ = add_child("dense_post_norm", make_norm(args, inner));
    beside_ = add_child("experts", make_moe(args, inner));
    experts_post_norm_ = add_child("experts_post_norm", make_norm(args, inner));
  }
  if (m.attn_out_dim > 0) {
    up_ = add_child("up", std::make_shared<Linear>(inner.dim, m.dim, output_init(m, inner.dim)));
    ranks_.between(*up_);
  }
  if (m.layer_scalar) {
    scalar_ = add_parameter("layer_scalar", {1}, Init::ones(), Role::vector);
    ranks_.between(*scalar_);
  }
}

at::Tensor StandardBlock::finished(const at::Tensor& y) const { return scalar_ != nullptr ? y * scalar_->value.to(y.scalar_type()) : y; }

at::Tensor StandardBlock::scaled(const at::Tensor& branch) const { return residual_scale_ == 1 ? branch : branch * residual_scale_; }

at::Tensor StandardBlock::dropped(const Dropout& dropout, const at::Tensor& branch, const ForwardContext& context) const {
  return ranks_.dropped(dropout, branch, context, training());
}

at::Tensor StandardBlock::attend(const at::Tensor& x, const ForwardContext& context) const {
  const TraceRange range(TraceKind::layer, "attention");
  if (shares_norm_) {  // x is normed already
    return dropped(drop_attention_, scaled(attention_->forward(x, context)), context);
  }
  at::Tensor y = normed(attention_post_norm_, attention_->forward(normed(attention_norm_, x), context));
  if (up_ != nullptr) {  // the branch goes on
    return y;
  }
  return dropped(drop_attention_, scaled(y), context);
}

at::Tensor StandardBlock::transform(const at::Tensor& x, const ForwardContext& context) const {
  const TraceRange range(TraceKind::layer, "mlp");
  return behind_mlp(fed_forward(x, context), context);
}

at::Tensor StandardBlock::behind_mlp(const at::Tensor& fed, const ForwardContext& context) const {
  const at::Tensor y = normed(mlp_post_norm_, fed);
  return dropped(drop_mlp_, scaled(up_ != nullptr ? up_->forward(y) : y), context);
}

bool StandardBlock::norms_the_sum(const ForwardContext& context) const {
  return mlp_norm_ && beside_ == nullptr && !(recompute_.mlp && may_recompute(context, training()));
}

at::Tensor StandardBlock::fed_forward(const at::Tensor& x, const ForwardContext& context) const {
  if (beside_ == nullptr) {
    return mlp_->forward(normed(mlp_norm_, x), context);
  }
  const at::Tensor once = at::alias(x);  // see Block
  return dense_post_norm_->forward(mlp_->forward(normed(mlp_norm_, once), context)) +
         experts_post_norm_->forward(beside_->forward(once, context));
}

at::Tensor StandardBlock::attended(const at::Tensor& x, const ForwardContext& context) const {
  if (!recompute_.attention || !may_recompute(context, training())) {
    return attend(x, context);
  }
  return recompute({[this](const at::Tensor& in, const ForwardContext& inside) { return attend(in, inside); }, recompute_.kept}, x,
                   context);
}

at::Tensor StandardBlock::transformed(const at::Tensor& x, const ForwardContext& context) const {
  if (!recompute_.mlp || !may_recompute(context, training())) {
    return transform(x, context);
  }
  return recompute({[this](const at::Tensor& in, const ForwardContext& inside) { return transform(in, inside); }, recompute_.kept}, x,
                   context);
}

at::Tensor StandardBlock::forward(const at::Tensor& x, const ForwardContext& context) const {
  if (parallel_) {
    const at::Tensor n = shares_norm_ ? attention_norm_->forward(x) : x;
    return observed(*this, x, finished(x + attended(n, context) + transformed(n, context)));
  }
  if (up_ != nullptr) {
    return observed(*this, x, finished(x + transformed(attended(x, context), context)));
  }
  const at::Tensor branch = attended(x, context);
  if (norms_the_sum(context)) {
    const TraceRange range(TraceKind::layer, "mlp");
    const SumAndNorm h = mlp_norm_->forward_sum(x, branch);
    return observed(*this, x, finished(h.sum + behind_mlp(mlp_->forward(h.norm, context), context)));
  }
  const at::Tensor h = x + branch;
  return observed(*this, x, finished(h + transformed(h, context)));
}

KvCache::Layer StandardBlock::make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const {
  return attention_->make_cache(batch, capacity, like);
}

}  // namespace kf
