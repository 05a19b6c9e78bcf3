#include "model/grouped_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "config/derived.h"
#include "model/init.h"
#include "model/observe.h"
#include "model/parts.h"
#include "registry/registries.h"

namespace kf {
namespace {

std::shared_ptr<Norm> norm_of(const config::ModelConfig& m, std::int64_t dim, const NormOptions& options) {
  if (m.qk_norm_type == "layernorm") {
    return std::make_shared<LayerNorm>(dim, options);
  }
  return std::make_shared<RmsNorm>(dim, options);
}

}  // namespace

GroupedAttention::GroupedAttention(const PartArgs& args, const Place& place)
    : n_kv_heads_(config::kv_heads(args.config.model)),
      head_dim_(config::head_dim(args.config.model)),
      layer_(place.layer),
      mixer_(score_options(args.config, place.layer, head_dim_),
             Dropout(args.config.model.dropout_attn, args.config.train.seed, place.layer, "scores")) {
  const config::ModelConfig& m = args.config.model;
  clip_ = m.attn_qkv_clip;
  const bool rotates = config::has_rope(m, place.layer);
  if (rotates) {
    rope_ = place.ropes->get(rope_options(args.config, place.layer, head_dim_));
  }
  const bool everywhere = m.attn_temp_layers == "all";
  if (m.attn_temp_tuning && (everywhere || !rotates)) {
    temperature_ = TemperatureTuning{m.attn_temp_scale, m.attn_temp_floor, everywhere ? 0 : 1};
  }
  const Init init = hidden_init(m, place.dim);
  const bool bias = config::has_input_bias(m);
  q_ = add_child("q_proj", std::make_shared<Linear>(place.dim, m.n_heads * head_dim_, init, Role::hidden, bias));
  k_ = add_child("k_proj", std::make_shared<Linear>(place.dim, n_kv_heads_ * head_dim_, init, Role::hidden, bias));
  v_ = add_child("v_proj", std::make_shared<Linear>(place.dim, n_kv_heads_ * head_dim_, init, Role::hidden, bias));
  const std::int64_t width = m.n_heads * head_dim_;
  o_ = add_child("o_proj", std::make_shared<Linear>(width, place.dim, output_init(m, width), Role::hidden, config::has_output_bias(m)));
  if (m.qk_norm) {
    add_norms(args.config);
  }
  if (m.attn_sink) {
    sinks_ = add_parameter("sinks", {m.n_heads}, Init::zeros(), Role::vector);
  }
}

void GroupedAttention::add_norms(const config::Config& config) {
  const config::ModelConfig& m = config.model;
  NormOptions options = norm_options(config);
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
  const auto make = [&](const char* name, std::int64_t heads) -> std::shared_ptr<Norm> {
    if (m.qk_norm_kind == "each") {
      NormOptions plain = options;
      plain.weight = plain.bias = false;
      return add_child(name, std::make_shared<HeadNorm>(norm_of(m, head_dim_, plain), heads, head_dim_, options));
    }
    return add_child(name, norm_of(m, norm_whole_ ? heads * head_dim_ : head_dim_, options));
  };
  q_norm_ = make("q_norm", m.n_heads);
  k_norm_ = make("k_norm", n_kv_heads_);
}

at::Tensor GroupedAttention::heads(const Linear& projection, const std::shared_ptr<Norm>& norm, const at::Tensor& x) const {
  at::Tensor y = projection.forward(x);  // (B, T, H * D)
  if (norm && norm_whole_ && !norm_late_) {
    y = norm->forward(y);
  }
  if (clip_ > 0) {
    y = y.clamp(-clip_, clip_);
  }
  y = y.view({x.size(0), x.size(1), -1, head_dim_});  // (B, T, H, D)
  if (norm && !norm_whole_ && !norm_late_) {
    y = norm->forward(y);
  }
  return y.transpose(1, 2);
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

at::Tensor GroupedAttention::forward(const at::Tensor& input, const ForwardContext& context) const {
  const at::Tensor x = at::alias(input);  // used once, see Block
  const std::int64_t first = context.cache != nullptr ? context.cache->filled : 0;
  at::Tensor q = placed(heads(*q_, q_norm_, x), q_norm_, context);  // (B, H, T, D)
  at::Tensor k = placed(heads(*k_, k_norm_, x), k_norm_, context);  // (B, Hkv, T, D)
  at::Tensor v = heads(*v_, nullptr, x);
  if (temperature_) {
    q = tempered(q, context);
  }
  if (context.cache != nullptr) {
    const KvCache::Layer& kept = context.cache->layers.at(static_cast<std::size_t>(layer_));
    k = append(kept.k, first, k);
    v = append(kept.v, first, v);
  }
  const at::Tensor mixed = mixer_.mix(q, k, v, sinks_ ? sinks_->value : at::Tensor(), context, training());  // (B, H, T, D)
  return observed(*this, input, o_->forward(mixed.transpose(1, 2).flatten(2)));
}

bool GroupedAttention::keeps_cache(std::int64_t length, std::int64_t longer) const {
  return !rope_ || same_angles(rope_->options(), length, longer);
}

void GroupedAttention::scale_queries(const at::Tensor& factors) const {
  const at::NoGradGuard no_grad;
  const at::Tensor each = factors.repeat_interleave(head_dim_);  // (H * D)
  for (const ParameterPtr& parameter : {q_->weight(), q_->bias()}) {
    if (parameter && parameter->trainable) {
      const at::Tensor master = parameter->master.detach();
      master.mul_(master.dim() == 2 ? each.unsqueeze(1) : each);
    }
  }
}

KvCache::Layer GroupedAttention::make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const {
  const auto empty = [&] { return at::zeros({batch, n_kv_heads_, capacity, head_dim_}, like.options().requires_grad(false)); };
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

ScoreOptions score_options(const config::Config& config, std::int64_t layer, std::int64_t head_dim) {
  const config::ModelConfig& m = config.model;
  ScoreOptions options;
  options.layer = layer;
  options.scale = score_scale(m, layer, head_dim);
  options.softcap = m.attn_softcap;
  options.alibi_heads = m.pos_embedding == "alibi" ? m.n_heads : 0;
  options.alibi_scale = m.alibi_scale;
  options.fp32_scores = m.attn_fp32 == "scores";
  options.fp32_softmax = m.attn_fp32 != "none";
  options.backend = m.sdpa_backend == "auto" && !config.train.compile_model ? "math" : m.sdpa_backend;
  const std::string& kind = config::layer_kind(m, layer);
  if (kind == "local") {
    options.reach = {Reach::Kind::local, m.window};
  } else if (kind == "chunk") {
    options.reach = {Reach::Kind::chunk, m.chunk};
  }
  return options;
}

RopeOptions rope_options(const config::Config& config, std::int64_t layer, std::int64_t head_dim) {
  const config::ModelConfig& m = config.model;
  RopeOptions options;
  options.fused = config.train.compile_model;
  options.head_dim = head_dim;
  options.max_seq_len = m.max_seq_len;
  options.fraction = m.rope_fraction;
  options.proportional = m.rope_fraction < 1 && m.rope_partial == "proportional";
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
    options.gain = longrope_temperature(m.rope_factor, m.rope_orig_len);
  } else if (m.rope_scaling == "llama3") {
    options.scaling = RopeOptions::Scaling::llama3;
    options.low_freq = m.rope_low_freq;
    options.high_freq = m.rope_high_freq;
  } else if (m.rope_scaling == "yarn") {
    options.scaling = RopeOptions::Scaling::yarn;
    options.beta_fast = m.rope_beta_fast;
    options.beta_slow = m.rope_beta_slow;
    options.truncate = m.rope_truncate;
    options.gain = m.rope_attn_factor == "rotary" ? yarn_temperature(m.rope_factor, m.rope_mscale) : 1;
  }
  return options;
}

}  // namespace kf
