#include "model/layer/grouped_attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>

#include "config/plan/context_parallel.h"
#include "config/plan/derived.h"
#include "kernels/self_attention/self_attention.h"
#include "model/init.h"
#include "model/layer/one_node.h"
#include "model/layer/visibility.h"
#include "model/observe.h"
#include "model/recompute/kept_results.h"
#include "registry/registries.h"

namespace kf {
namespace {

/// kv heads that the queries of a rank read, where they are no even share: one if they all read it, else one a query.
std::vector<std::int64_t> kv_of_queries(const TensorRanks& ranks, std::int64_t heads, std::int64_t kv_heads) {
  if (kv_heads % ranks.size() == 0) {
    return {};
  }
  std::vector<std::int64_t> out;
  for (std::int64_t head = 0; head < heads / ranks.size(); ++head) {
    out.push_back((ranks.rank() * (heads / ranks.size()) + head) / (heads / kv_heads));
  }
  return out.front() == out.back() ? std::vector<std::int64_t>{out.front()} : out;
}

std::shared_ptr<Norm> norm_of(const config::ModelConfig& m, std::int64_t dim, const NormOptions& options) {
  if (m.qk_norm_type == "layernorm") {
    return std::make_shared<LayerNorm>(dim, options);
  }
  return std::make_shared<RmsNorm>(dim, options);
}

/// Whole weights of what works on a rank's own heads: their gradients are shares.
void inside(const Module& module) {
  for (const auto& [name, weight] : module.named_parameters()) {
    weight->split = Split::sequence;
    weight->split_unit = 1;
  }
}

}  // namespace

GroupedAttention::GroupedAttention(const PartArgs& args, const Place& place)
    : ranks_(args),
      n_kv_heads_(config::kv_heads(args.config.model, place.layer)),
      head_dim_(config::head_dim(args.config.model, place.layer)),
      layer_(place.layer),
      mixer_(score_options(args, place.layer, head_dim_),
             Dropout(args.config.model.dropout_attn, args.config.train.seed, place.layer, "scores")) {
  const config::ModelConfig& m = args.config.model;
  ranks_.share_of(m.n_heads, "heads (model.n_heads)");
  kv_of_queries_ = kv_of_queries(ranks_, m.n_heads, n_kv_heads_);
  clip_ = m.attn_qkv_clip;
  const bool rotates = config::has_rope(m, place.layer);
  if (rotates) {
    rope_ = place.ropes->get(rope_options(args, place.layer, head_dim_));
  }
  const bool everywhere = m.attn_temp_layers == "all";
  if (m.attn_temp_tuning && (everywhere || !rotates)) {
    temperature_ = TemperatureTuning{m.attn_temp_scale, m.attn_temp_floor, everywhere ? 0 : 1};
  }
  const Init init = hidden_init(m, place.dim);
  const bool bias = config::has_input_bias(m);
  q_ = add_child("q_proj", std::make_shared<Linear>(place.dim, m.n_heads * head_dim_, init, Role::hidden, bias));
  k_ = add_child("k_proj", std::make_shared<Linear>(place.dim, n_kv_heads_ * head_dim_, init, Role::hidden, bias));
  if (!config::keys_are_values(m, place.layer)) {
    v_ = add_child("v_proj", std::make_shared<Linear>(place.dim, n_kv_heads_ * head_dim_, init, Role::hidden, bias));
  }
  const std::int64_t width = m.n_heads * head_dim_;
  const std::int64_t out = config::branch_dim(m);
  o_ = add_child("o_proj", std::make_shared<Linear>(width, out, output_init(m, width), Role::hidden, config::has_output_bias(m)));
  if (m.attn_gate != "none") {
    gate_ = add_child("gate_proj", std::make_shared<Linear>(place.dim, m.attn_gate == "head" ? m.n_heads : width, init));
  }
  q_->weight()->next_follows = k_->weight()->next_follows = v_ && !bias;
  split_by_heads(m.attn_gate == "head");
  if (m.v_norm != "none") {
    NormOptions options = norm_options(args);
    options.weight = options.weight && m.v_norm == "scaled";
    v_norm_ = add_child("v_norm", std::make_shared<RmsNorm>(head_dim_, options));
    inside(*v_norm_);
  }
  if (m.qk_norm) {
    add_norms(args);
  }
  if (m.attn_sink) {
    sinks_ = add_parameter("sinks", {m.n_heads}, Init::zeros(), Role::vector);
    sinks_->split = Split::colwise;
  }
}

void GroupedAttention::split_by_heads(bool gate_a_head) {
  q_->split(Split::colwise, head_dim_, ranks_);
  for (const std::shared_ptr<Linear>& layer : {k_, v_}) {
    if (layer) {
      layer->split(kv_of_queries_.empty() ? Split::colwise : Split::sequence, kv_of_queries_.empty() ? head_dim_ : 1, ranks_);
    }
  }
  o_->split(Split::rowwise, head_dim_, ranks_);
  if (gate_) {
    gate_->split(Split::colwise, gate_a_head ? 1 : head_dim_, ranks_);
  }
}

void GroupedAttention::add_norms(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  NormOptions options = norm_options(args);
  options.bias = m.qk_norm_bias;
  norm_late_ = m.qk_norm_late || m.qk_norm_kind == "l2";
  norm_whole_ = m.qk_norm_kind == "full";
  norm_absolute_ = m.qk_norm_type == "layernorm" || (m.qk_norm_kind != "l2" && (options.weight || options.bias));
  if (m.qk_norm_kind == "l2") {
    options.weight = options.bias = false;
    if (rope_) {  // layers that do not rotate have none
      q_norm_ = k_norm_ = add_child("qk_norm", norm_of(m, head_dim_, options));
    }
    return;
  }
  const auto make = [&](const char* name, std::int64_t heads, bool divided) -> std::shared_ptr<Norm> {
    if (m.qk_norm_kind == "each") {
      NormOptions plain = options;
      plain.weight = plain.bias = false;
      const auto norm = add_child(name, std::make_shared<HeadNorm>(norm_of(m, head_dim_, plain), heads, head_dim_, options));
      if (!divided) {
        inside(*norm);
      }
      return norm;
    }
    NormOptions own = options;
    own.unit = head_dim_;
    own.ranks = norm_whole_ && divided ? ranks_ : TensorRanks();
    auto norm = add_child(name, norm_of(m, norm_whole_ ? heads * head_dim_ : head_dim_, own));
    if (!own.ranks.many()) {
      inside(*norm);
    }
    return norm;
  };
  q_norm_ = make("q_norm", m.n_heads, true);
  k_norm_ = make("k_norm", n_kv_heads_, kv_of_queries_.empty());
}

at::Tensor GroupedAttention::own_kv_heads(const at::Tensor& x) const {
  if (kv_of_queries_.empty()) {
    return x;
  }
  return kv_of_queries_.size() == 1 ? x.narrow(1, kv_of_queries_.front(), 1)
                                    : x.index_select(1, at::tensor(kv_of_queries_, at::TensorOptions(at::kLong).device(x.device())));
}

at::Tensor GroupedAttention::heads(const at::Tensor& projected, const std::shared_ptr<Norm>& norm) const {
  at::Tensor y = projected;  // (B, T, H * D)
  if (norm && norm_whole_ && !norm_late_) {
    y = norm->forward(y);
  }
  return split(y, norm && !norm_whole_ && !norm_late_ ? norm : nullptr);
}

at::Tensor GroupedAttention::split(const at::Tensor& projected, const std::shared_ptr<Norm>& norm) const {
  at::Tensor y = clip_ > 0 ? projected.clamp(-clip_, clip_) : projected;
  y = y.view({y.size(0), y.size(1), -1, head_dim_});  // (B, T, H, D)
  return (norm ? norm->forward(y) : y).transpose(1, 2);
}

at::Tensor GroupedAttention::gated(const at::Tensor& mixed, const at::Tensor& x) const {
  at::Tensor flat = mixed.transpose(1, 2).flatten(2);  // (B, T, H * D)
  if (!gate_) {
    return flat;
  }
  const at::Tensor gate = gate_->forward(x).sigmoid();  // (B, T, H * D or H)
  return gate.size(2) == flat.size(2) ? flat * gate : (flat.unflatten(2, {gate.size(2), -1}) * gate.unsqueeze(-1)).flatten(2);
}

at::Tensor GroupedAttention::placed(const at::Tensor& x, const std::shared_ptr<Norm>& norm, const ForwardContext& context) const {
  // Weights, or a mean that is taken away, behind the rotation let the positions themselves reach the scores, not only their differences:
  // documents begin at 0.
  const at::Tensor turned = rotated(rope_.get(), x, context, norm_late_ && norm_absolute_);
  return norm && norm_late_ ? norm->forward(turned) : turned;
}

at::Tensor GroupedAttention::tempered(const at::Tensor& q, const ForwardContext& context) const {
  const std::int64_t past = context.cache != nullptr ? context.cache->filled : 0;
  const Visibility own(past, q.size(2), q.device());
  const at::Tensor positions = (context.visible ? *context.visible : own).positions();  // (B or 1, T)
  const at::Tensor periods = (positions + temperature_->first).floor_divide(temperature_->floor).to(at::kFloat);
  const at::Tensor scale = at::log1p(periods) * temperature_->scale + 1;
  return (q * scale.unsqueeze(1).unsqueeze(3)).to(q.scalar_type());
}

std::optional<HeadNorms> GroupedAttention::head_norms() const {
  if (!q_norm_ && !k_norm_) {
    return HeadNorms();
  }
  if (!q_norm_ || !k_norm_ || norm_late_ || norm_whole_) {
    return std::nullopt;
  }
  const std::optional<RmsFactor> q = q_norm_->as_rms(), k = k_norm_->as_rms();
  return q && k && q->eps == k->eps ? std::optional(HeadNorms{true, q->eps, q->factor, k->factor}) : std::nullopt;
}

at::Tensor GroupedAttention::as_one_node(const at::Tensor& x, const ForwardContext& context) const {
  const bool plain =
      v_ && !v_norm_ && !gate_ && !sinks_ && !temperature_ && clip_ == 0 && q_->bare() && k_->bare() && v_->bare() && o_->bare();
  if (!plain || !mixer_.takes_one_node(context, training()) || !may_be_one_node()) {
    return {};
  }
  const ScoreOptions& scores = mixer_.options();
  SelfAttentionInput in;
  if (const std::optional<HeadNorms> norms = head_norms(); norms) {
    in.norms = *norms;
  } else {
    return {};
  }
  if (rope_) {
    if (rope_->depends_on_length() && context.visible->lengths().defined()) {
      return {};
    }
    const Rope::Table angles = rope_->angles(x.size(1), x.device());
    in.cos = angles.cos;
    in.sin = angles.sin;
    in.interleaved = rope_->options().interleaved;
  }
  in.x = x;
  in.q = q_->weight()->value;
  in.k = k_->weight()->value;
  in.v = v_->weight()->value;
  in.out = o_->weight()->value;
  if (const auto ranges = context.visible->ranges(scores.reach); ranges != nullptr) {
    in.first = ranges->first();
  }
  in.head_dim = head_dim_;
  in.scale = scores.rules.scale;
  in.softcap = scores.rules.softcap;
  return scores.kernels->self_attention(in);
}

at::Tensor GroupedAttention::forward(const at::Tensor& input, const ForwardContext& context) const {
  if (at::Tensor y = as_one_node(input, context); y.defined()) {
    return y;
  }
  const at::Tensor x = at::alias(ranks_.enter(input, context));  // used once, see Block
  const std::int64_t first = context.cache != nullptr ? context.cache->filled : 0;
  const auto projected = [&](const char* name, const Linear& projection) {
    return named_result(name, [&] { return projection.forward(x); });
  };
  at::Tensor q = placed(heads(projected("q", *q_), q_norm_), q_norm_, context);  // (B, H, T, D)
  const at::Tensor keys = projected("k", *k_);
  at::Tensor k = own_kv_heads(placed(heads(keys, k_norm_), k_norm_, context));  // (B, Hkv, T, D)
  at::Tensor v = own_kv_heads(split(v_ ? projected("v", *v_) : keys, v_norm_));
  if (temperature_) {
    q = tempered(q, context);
  }
  if (context.cache != nullptr) {
    const KvCache::Layer& kept = context.cache->layers.at(static_cast<std::size_t>(layer_));
    k = append(kept.k, first, k);
    v = append(kept.v, first, v);
  }
  const at::Tensor mixed = mixer_.mix(q, k, v, sinks_ ? sinks_->value : at::Tensor(), context, training());  // (B, H, T, D)
  const at::Tensor passed = gated(mixed, x);
  return observed(*this, input, ranks_.leave(named_result("out", [&] { return o_->forward(passed); }), context));
}

bool GroupedAttention::keeps_cache(std::int64_t length, std::int64_t longer) const {
  return !rope_ || same_angles(rope_->options(), length, longer);
}

void GroupedAttention::scale_queries(const at::Tensor& factors) const {
  const at::NoGradGuard no_grad;
  const at::Tensor each = factors.repeat_interleave(head_dim_);  // (H * D)
  for (const ParameterPtr& parameter : {q_->weight(), q_->bias()}) {
    if (parameter && parameter->trainable) {
      const Range mine = parameter->placement.of(parameter->shape);  // the rows that lie on this rank
      const at::Tensor rows = each.narrow(0, mine.begin[0], mine.size[0]);
      if (mine.size[0] > 0) {
        const at::Tensor master = parameter->master.detach();
        master.mul_(master.dim() == 2 ? rows.unsqueeze(1) : rows);
      }
    }
  }
}

KvCache::Layer GroupedAttention::make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const {
  const std::int64_t heads = kv_of_queries_.empty() ? n_kv_heads_ / ranks_.size() : static_cast<std::int64_t>(kv_of_queries_.size());
  const auto empty = [&] { return at::zeros({batch, heads, capacity, head_dim_}, like.options().requires_grad(false)); };
  return {empty(), empty()};
}

double score_scale(const config::ModelConfig& m, std::int64_t layer, std::int64_t head_dim) {
  double scale = m.attn_scale > 0 ? m.attn_scale : 1 / std::sqrt(static_cast<double>(head_dim));
  if (m.attn_inverse_layer_scale) {
    scale /= static_cast<double>(layer + 1);
  }
  if (m.rope_scaling == "yarn" && m.rope_attn_factor == "softmax") {
    const double temperature = yarn_temperature(m.rope_factor, m.rope_mscale);
    scale *= temperature * temperature;  // once for the query, once for the key
  }
  return scale;
}

namespace {

/// model.sdpa_backend: "math" is the formula, a named kernel that one alone, and "auto" what the job's table has.
void set_backend(ScoreOptions& options, const std::string& name, const Kernels& of_job) {
  using Backend = AttentionRules::Backend;
  options.kernels = name == "auto" ? &of_job : name == "math" ? &plain_kernels() : &fused_kernels();
  static const std::map<std::string, Backend> named{
      {"flash", Backend::flash}, {"efficient", Backend::efficient}, {"cudnn", Backend::cudnn}};
  const auto found = named.find(name);
  options.rules.backend = found == named.end() ? Backend::any : found->second;
}

}  // namespace

ScoreOptions score_options(const PartArgs& args, std::int64_t layer, std::int64_t head_dim) {
  const config::ModelConfig& m = args.config.model;
  ScoreOptions options;
  options.layer = layer;
  options.rules.scale = score_scale(m, layer, head_dim);
  options.rules.softcap = m.attn_softcap;
  options.rules.fp32_scores = m.attn_fp32 == "scores";
  options.rules.fp32_softmax = m.attn_fp32 != "none";
  set_backend(options, m.sdpa_backend, *args.kernels);
  if (const TensorRanks ranks(args); ranks.many()) {
    options.all_heads = m.n_heads;
    options.heads = m.n_heads / ranks.size();
    options.first_head = ranks.rank() * options.heads;
  }
  options.alibi_heads = m.pos_embedding == "alibi" ? m.n_heads : 0;
  options.alibi_scale = m.alibi_scale;
  options.ring = config::uses_ring(args.config);
  const std::string& kind = config::layer_kind(m, layer);
  if (kind == "local") {
    options.reach = {Reach::Kind::local, m.window};
  } else if (kind == "chunk") {
    options.reach = {Reach::Kind::chunk, m.chunk};
  }
  return options;
}

RopeOptions rope_options(const PartArgs& args, std::int64_t layer, std::int64_t head_dim) {
  const config::ModelConfig& m = args.config.model;
  RopeOptions options;
  options.kernels = args.kernels;
  options.head_dim = head_dim;
  options.max_seq_len = m.max_seq_len;
  options.fraction = config::rope_fraction(m, layer);
  options.proportional = options.fraction < 1 && m.rope_partial == "proportional";
  options.interleaved = m.rope_layout == "interleaved";
  if (m.rope_theta_local && config::layer_kind(m, layer) == "local") {
    options.theta = *m.rope_theta_local;
    return options;  // without scaling
  }
  options.theta = m.rope_theta;
  options.factor = m.rope_factor;
  options.orig_len = m.rope_orig_len;
  if (m.rope_scaling == "linear") {
    options.scaling = RopeOptions::Scaling::linear;
  } else if (m.rope_scaling == "dynamic") {
    options.scaling = RopeOptions::Scaling::dynamic;
  } else if (m.rope_scaling == "longrope") {
    options.scaling = RopeOptions::Scaling::longrope;
    options.short_factors = m.rope_short_factors;
    options.long_factors = m.rope_long_factors;
    options.gain = m.rope_gain.value_or(longrope_temperature(m.rope_factor, m.rope_orig_len));
  } else if (m.rope_scaling == "llama3") {
    options.scaling = RopeOptions::Scaling::llama3;
    options.low_freq = m.rope_low_freq;
    options.high_freq = m.rope_high_freq;
  } else if (m.rope_scaling == "yarn") {
    options.scaling = RopeOptions::Scaling::yarn;
    options.beta_fast = m.rope_beta_fast;
    options.beta_slow = m.rope_beta_slow;
    options.truncate = m.rope_truncate;
    options.gain = m.rope_gain.value_or(m.rope_attn_factor == "rotary" ? yarn_temperature(m.rope_factor, m.rope_mscale) : 1);
  }
  return options;
}

}  // namespace kf
