// Dense families of 2025 and later, and Llama under other names: InternLM 3, EXAONE 3, IQuest Coder, Ministral 3, Jais 2, Apertus,
// nanochat, HyperCLOVA X, Granite with windows.

#include <cmath>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

void set_bias(Reader& c, bool attention, bool mlp) {
  if (attention) {
    c.set("attn_bias", std::string("all"));
  }
  if (mlp) {
    c.set("mlp_bias", true);
  }
}

/// Granite's factors but for the one on the logits.
void take_factors(Reader& c, double scores) {
  c.set("embed_scale", c.real("embedding_multiplier", 1));
  c.set("residual_scale", c.real("residual_multiplier", 1));
  c.set("attn_scale", c.real("attention_multiplier", scores));
}

/// layer_rope_theta, one base a layer, 0 where it does not rotate; global layers that rotate have one base, sliding ones have one.
void take_layer_bases(Reader& c, const std::vector<std::string>& kinds) {
  const Array* const list = c.list("layer_rope_theta");
  if (list == nullptr) {
    return;
  }
  std::optional<double> global, local;
  bool understood = list->size() == kinds.size();
  std::vector<bool> rotates;
  for (std::size_t i = 0; understood && i < kinds.size(); ++i) {
    const Node& node = (*list)[i];
    const auto* const whole = std::get_if<std::int64_t>(&node.value);
    const auto* const number = std::get_if<double>(&node.value);
    const double base = whole ? static_cast<double>(*whole) : number ? *number : 0;
    std::optional<double>& known = kinds[i] == "local" ? local : global;
    rotates.push_back(base > 0);
    understood = base >= 0 && (whole || number) && (base == 0 || known.value_or(base) == base);
    known = base > 0 ? base : known;
  }
  if (!understood) {
    c.problem("layer_rope_theta is understood where all full_attention layers have one base, or 0, and all sliding_attention layers one");
    return;
  }
  set_rotating_layers(c, rotates);
  c.set("rope_theta", global.value_or(local.value_or(1)));
  if (global && local && *local != *global) {
    c.set("rope_theta_local", *local);
  }
}

}  // namespace

/// qkv_bias and bias are older names of attention_bias and mlp_bias; the class has one switch for both.
void read_internlm3(Reader& c) {
  take_rms_base(c, 1e-5);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  const bool attention = c.flag("qkv_bias", c.flag("attention_bias", false));
  const bool mlp = c.flag("bias", c.flag("mlp_bias", false));
  c.only("attention_bias", Node(attention));
  c.only("mlp_bias", Node(mlp));
  if (attention != mlp) {
    c.problem("attention_bias (qkv_bias) other than mlp_bias (bias) is not understood: the class has one switch for both");
  }
  set_bias(c, attention, mlp);
  take_rope(c, {});
}

void read_iquestcoder(Reader& c) {
  take_rms_base(c, 1e-5);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  set_bias(c, c.flag("attention_bias", false), c.flag("mlp_bias", false));
  c.only("clip_qkv", Node());
  c.only("use_sliding_window", Node(false));
  take_rope(c, {});
}

void read_exaone(Reader& c) {
  ShapeKeys keys;
  keys.layers = one_of_names(c, "num_layers", "num_hidden_layers");
  take_shape(c, false, keys);
  take_rms_norm(c, one_of_names(c, "layer_norm_epsilon", "rms_norm_eps"), 1e-5);
  take_activation(c, one_of_names(c, "activation_function", "hidden_act"), "silu", true);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_head_dim(c);
  set_bias(c, c.flag("attention_bias", false), c.flag("mlp_bias", false));
  take_rope(c, {500000});
}

/// Mistral whose queries grow with their positions.
void read_ministral3(Reader& c) {
  const Shape shape = take_rms_base(c, 1e-5);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  const std::int64_t window = c.integer("sliding_window", 0);
  take_layer_types(c, all_layers(shape.layers, window > 0 ? "local" : "global"), window);
  RopeFamily rope;
  rope.llama4_beta = true;
  take_rope(c, rope);
}

/// Layer norms, a squared ReLU without a gate.
void read_jais2(Reader& c) {
  take_shape(c, false);
  take_layer_norm(c, "layer_norm_eps", 1e-5, true);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_head_dim(c);
  take_activation(c, "hidden_act", "relu2", false);
  set_bias(c, c.flag("attention_bias", true), c.flag("mlp_bias", true));
  take_rope(c, {});
}

/// Qwen 3's attention, xIELU without a gate.
void read_apertus(Reader& c) {
  take_rms_base(c, 1e-5);
  take_head_dim(c);
  c.only("hidden_act", Node(std::string("xielu")));
  c.set("activation", std::string("xielu"));
  set_bias(c, c.flag("attention_bias", false), c.flag("mlp_bias", false));
  c.set("qk_norm", true);
  c.only("qk_norm", Node(true));
  c.only("post_norm", Node(false));
  RopeFamily rope;
  rope.theta = 12000000;
  rope.stretched = true;
  take_rope(c, rope);
}

/// No norm has a weight; one follows the embedding, and queries and keys have theirs behind the rotation, which turns the other way.
void read_nanochat(Reader& c) {
  take_rms_base(c, 1e-6);
  take_head_dim(c);
  take_activation(c, "hidden_act", "relu2", false);
  set_bias(c, c.flag("attention_bias", false), false);
  c.set("norm_weight", false);
  c.set("embed_norm", true);
  c.set("qk_norm", true);
  c.set("qk_norm_kind", std::string("l2"));
  take_cap(c, "final_logit_softcapping", "final_logit_softcap", 15);
  take_rope(c, {});
}

/// Granite with norms behind the branches; logits_scaling multiplies.
void read_hyperclovax(Reader& c) {
  const Shape shape = take_rms_base(c, 1e-6);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  set_bias(c, c.flag("attention_bias", false), c.flag("mlp_bias", false));
  c.set("norm_placement", std::string(c.flag("use_post_norm", true) ? "sandwich" : "pre"));
  const std::int64_t usual = head_width(shape.dim, shape.heads);
  take_factors(c, 1 / std::sqrt(static_cast<double>(c.integer("head_dim", usual))));
  c.set("logit_scale", c.real("logits_scaling", 1));
  take_rope(c, {});
}

namespace {

/// Granite with windows, sinks and bases by layer; every fourth layer, from the first, sees everything.
void take_granite_windows(Reader& c, bool tied, double eps) {
  const Shape shape = take_shape(c, tied);
  take_rms_norm(c, "rms_norm_eps", eps);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_factors(c, 1);
  c.set("logit_scale", 1 / c.real("logits_scaling", 1));
  c.set("attn_sink", true);
  std::vector<std::string> kinds = all_layers(shape.layers, "local");
  for (std::size_t i = 0; i < kinds.size(); i += 4) {
    kinds[i] = "global";
  }
  kinds = take_layer_types(c, kinds, sliding_window_or(c, 128));
  take_rope(c, {});
  take_layer_bases(c, kinds);
}

}  // namespace

void read_granite_swa(Reader& c) {
  take_granite_windows(c, true, 1e-5);
  set_bias(c, c.flag("attention_bias", false), c.flag("mlp_bias", false));
}

/// The same with the experts of granitemoeshared.
void read_granitemoe_swa(Reader& c) {
  take_granite_windows(c, false, 1e-6);
  take_attention_bias(c, false, "all");
  take_granite_experts(c);
}

}  // namespace kf::config::huggingface
