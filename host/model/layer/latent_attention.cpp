#include "model/layer/latent_attention.h"

#include <ATen/ATen.h>

#include "config/plan/derived.h"
#include "config/schema/config.h"
#include "model/init.h"
#include "model/layer/grouped_attention.h"
#include "model/layer/visibility.h"
#include "model/observe.h"
#include "model/recompute/kept_results.h"
#include "registry/registries.h"

namespace kf {

LatentAttention::LatentAttention(const PartArgs& args, const Place& place)
    : ranks_(args),
      n_heads_(ranks_.share_of(args.config.model.n_heads, "heads (model.n_heads)")),
      nope_(args.config.model.mla_nope_dim),
      rope_dim_(args.config.model.mla_rope_dim),
      v_dim_(args.config.model.mla_v_dim),
      rank_(args.config.model.mla_kv_rank),
      layer_(place.layer),
      mixer_(score_options(args, place.layer, nope_ + rope_dim_),
             Dropout(args.config.model.dropout_attn, args.config.train.seed, place.layer, "scores")) {
  const config::ModelConfig& m = args.config.model;
  if (config::has_rope(m, place.layer)) {
    rope_ = place.ropes->get(rope_options(args, place.layer, rope_dim_));
  }
  const std::int64_t all = m.n_heads;
  const bool bias = config::has_input_bias(m);
  NormOptions latent = norm_options(args);
  latent.eps = m.mla_norm_eps.value_or(latent.eps);
  const auto linear = [&](const char* name, std::int64_t in, std::int64_t out, const Init& init, bool with_bias) {
    return add_child(name, std::make_shared<Linear>(in, out, init, Role::hidden, with_bias));
  };
  if (m.mla_q_rank == 0) {
    q_ = linear("q_proj", place.dim, all * (nope_ + rope_dim_), hidden_init(m, place.dim), false);
  } else {
    q_a_ = linear("q_a_proj", place.dim, m.mla_q_rank, hidden_init(m, place.dim), bias);
    q_a_norm_ = add_child("q_a_norm", std::make_shared<RmsNorm>(m.mla_q_rank, latent));
    q_b_ = linear("q_b_proj", m.mla_q_rank, all * (nope_ + rope_dim_), hidden_init(m, m.mla_q_rank), false);
    divide_rows(*q_a_, *q_a_norm_);
  }
  kv_a_ = linear("kv_a_proj", place.dim, rank_ + rope_dim_, hidden_init(m, place.dim), bias);
  kv_a_norm_ = add_child("kv_a_norm", std::make_shared<RmsNorm>(rank_, latent));
  divide_rows(*kv_a_, *kv_a_norm_);
  kv_b_ = linear("kv_b_proj", rank_, all * (nope_ + v_dim_), hidden_init(m, rank_), false);
  o_ = linear("o_proj", all * v_dim_, place.dim, output_init(m, all * v_dim_), config::has_output_bias(m));
  (q_ ? q_ : q_b_)->split(Split::colwise, nope_ + rope_dim_, ranks_);  // the latent is the same for all heads
  kv_b_->split(Split::colwise, nope_ + v_dim_, ranks_);
  o_->split(Split::rowwise, v_dim_, ranks_);
  if (m.attn_sink) {
    sinks_ = add_parameter("sinks", {all}, Init::zeros(), Role::vector);
    sinks_->split = Split::colwise;
  }
}

void LatentAttention::divide_rows(Linear& down, Norm& norm) const {
  if (ranks_.splits_sequence()) {
    down.split(Split::sequence, 1, ranks_);
    ranks_.between(norm);
  }
}

bool LatentAttention::keeps_cache(std::int64_t length, std::int64_t longer) const {
  return !rope_ || same_angles(rope_->options(), length, longer);
}

at::Tensor LatentAttention::queries(const at::Tensor& x, const ForwardContext& context) const {
  const at::Tensor in = ranks_.enter(q_ ? x : q_a_norm_->forward(named_result("q_a", [&] { return q_a_->forward(x); })), context);
  const at::Tensor flat = named_result("q", [&] { return (q_ ? q_ : q_b_)->forward(in); });
  const at::Tensor q = flat.view({in.size(0), in.size(1), n_heads_, nope_ + rope_dim_}).transpose(1, 2);  // (B, H, T, nope + rope)
  return at::cat({q.narrow(3, 0, nope_), rotated(rope_.get(), q.narrow(3, nope_, rope_dim_), context)}, 3);
}

at::Tensor LatentAttention::forward(const at::Tensor& input, const ForwardContext& context) const {
  const at::Tensor x = at::alias(input);  // used once, see Block
  const std::int64_t first = context.cache != nullptr ? context.cache->filled : 0;
  const at::Tensor down = named_result("kv_a", [&] { return kv_a_->forward(x); });  // (B, rows, rank + rope)
  const at::Tensor normal = kv_a_norm_->forward(down.narrow(2, 0, rank_));
  at::Tensor latent = ranks_.enter(normal, context).unsqueeze(1);  // (B, 1, T, rank)
  at::Tensor k_rope =
      rotated(rope_.get(), ranks_.enter(down.narrow(2, rank_, rope_dim_), context).unsqueeze(1), context);  // (B, 1, T, rope)
  if (context.cache != nullptr) {
    const KvCache::Layer& kept = context.cache->layers.at(static_cast<std::size_t>(layer_));
    latent = append(kept.k, first, latent);
    k_rope = append(kept.v, first, k_rope);
  }
  if (const SequencePart* part = context.visible ? context.visible->part() : nullptr; part != nullptr) {
    const at::Tensor joint = all_positions(at::cat({latent, k_rope}, 3), 2, *part);  // far less than the keys and values of all heads
    latent = joint.narrow(3, 0, rank_);
    k_rope = joint.narrow(3, rank_, rope_dim_);
  }
  const std::int64_t all = latent.size(2);
  const at::Tensor both = named_result("kv", [&] { return kv_b_->forward(latent.squeeze(1)); });
  const at::Tensor up = both.view({x.size(0), all, n_heads_, nope_ + v_dim_}).transpose(1, 2);
  const at::Tensor k = at::cat({up.narrow(3, 0, nope_), k_rope.expand({x.size(0), n_heads_, all, rope_dim_})}, 3);
  const at::Tensor v = up.narrow(3, nope_, v_dim_);  // (B, H, S, v)
  const at::Tensor mixed = mixer_.mix(queries(x, context), k, v, sinks_ ? sinks_->value : at::Tensor(), context, training());
  return observed(*this, input, ranks_.leave(named_result("out", [&] { return o_->forward(mixed.transpose(1, 2).flatten(2)); }), context));
}

KvCache::Layer LatentAttention::make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const {
  const auto empty = [&](std::int64_t width) { return at::zeros({batch, 1, capacity, width}, like.options().requires_grad(false)); };
  return {empty(rank_), empty(rope_dim_)};
}

}  // namespace kf
