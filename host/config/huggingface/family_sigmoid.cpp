// Families with DeepSeek V3's router around an attention of their own: GLM 4.5, dots.llm1, Solar Open, Sarvam 30B, EXAONE MoE, Hunyuan 3.

#include <algorithm>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// What a family calls the keys of its experts.
struct SigmoidKeys {
  const char* experts = "n_routed_experts";
  const char* shared = "n_shared_experts";
  const char* scale = "routed_scaling_factor";
  double usual_scale = 1;
  std::int64_t usual_shared = 1;
};

/// DeepSeek V3's router and layout of experts, around another attention.
void take_sigmoid_experts(Reader& c, const SigmoidKeys& keys = {}) {
  c.set("num_experts", c.integer(keys.experts));
  c.set("moe_top_k", c.integer("num_experts_per_tok"));
  const std::int64_t width = c.integer("moe_intermediate_size");
  c.set("moe_ffn_dim", width);
  if (const std::int64_t shared = c.integer(keys.shared, keys.usual_shared); shared > 0) {
    c.set("moe_shared_experts", std::int64_t{1});
    c.set("moe_shared_ffn_dim", shared * width);
  }
  c.set("moe_routed_scale", c.real(keys.scale, keys.usual_scale));
  c.set("moe_router", std::string("sigmoid"));
  c.set("moe_bias_rule", std::string("sign"));
  c.set("moe_aux_loss_weight", 0.0);     // the classes have none
  c.only("norm_topk_prob", Node(true));  // sigmoid weights are always divided by their sum here
  c.only("scoring_func", Node(std::string("sigmoid")));
  take_router_groups(c, 1, 1);
  c.ignore({"num_nextn_predict_layers", "aux_loss_alpha", "seq_aux", "ep_size", "router_aux_loss_coef", "output_router_logits"});
}

}  // namespace

/// Half of each head rotates; biases on q, k, v.
void read_glm4_moe(Reader& c) {
  take_silu_base(c, 1e-5);
  take_head_dim(c);
  take_attention_bias(c, false, "qkv");
  if (c.flag("use_qk_norm", false)) {
    c.set("qk_norm", true);
  }
  take_sigmoid_experts(c);
  c.set("moe_first_dense", c.integer("first_k_dense_replace", 1));
  take_rope(c, {10000, 0.5});
}

/// Qwen 3's attention.
void read_dots1(Reader& c) {
  const Shape shape = take_silu_base(c, 1e-6);
  take_head_dim(c);
  take_attention_bias(c, false, "all");
  c.set("qk_norm", true);
  const std::int64_t window = c.integer("sliding_window", 0);
  const std::int64_t first = c.integer("max_window_layers", shape.layers);
  std::vector<std::string> kinds = all_layers(shape.layers, "global");
  for (std::int64_t i = std::max<std::int64_t>(first, 0); window > 0 && i < shape.layers; ++i) {
    kinds[static_cast<std::size_t>(i)] = "local";
  }
  take_layer_types(c, kinds, window);
  SigmoidKeys keys;
  keys.usual_shared = 0;
  take_sigmoid_experts(c, keys);
  c.set("moe_first_dense", c.integer("first_k_dense_replace", 0));
  take_rope(c, {});
}

/// Every layer has experts; no bias behind the attention.
void read_solar_open(Reader& c) {
  ShapeKeys shape;
  shape.width = "moe_intermediate_size";
  take_shape(c, false, shape);
  take_rms_norm(c, "rms_norm_eps", 1e-5);
  c.ignore({"intermediate_size"});  // no layer is dense
  take_activation(c, "hidden_act", "silu", true);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_head_dim(c, 128);
  take_attention_bias(c, false, "qkv");
  take_sigmoid_experts(c);
  c.only("first_k_dense_replace", Node(std::int64_t{0}));
  RopeFamily rope{1000000};
  rope.partial = true;
  take_rope(c, rope);
}

/// GLM 4.5 with whole heads rotating, under older names of three keys.
void read_sarvam_moe(Reader& c) {
  take_silu_base(c, 1e-6);
  take_head_dim(c, 64);
  if (c.flag(one_of_names(c, "use_qkv_bias", "attention_bias"), false)) {
    c.set("attn_bias", std::string("qkv"));
  }
  if (c.flag("use_qk_norm", true)) {
    c.set("qk_norm", true);
  }
  SigmoidKeys keys;
  keys.experts = one_of_names(c, "num_experts", "n_routed_experts");
  keys.shared = one_of_names(c, "num_shared_experts", "n_shared_experts");
  keys.usual_scale = 2.5;
  take_sigmoid_experts(c, keys);
  c.set("moe_first_dense", c.integer("first_k_dense_replace", 1));
  take_rope(c, {8000000});
}

/// EXAONE 4's attention, norms before the branches: every sliding_window_pattern-th layer is global and does not rotate.
void read_exaone_moe(Reader& c) {
  const Shape shape = take_silu_base(c, 1e-5);
  take_head_dim(c);
  c.set("qk_norm", true);
  take_global_without_rotation(c, shape.layers, 4096);
  SigmoidKeys keys;
  keys.experts = "num_experts";
  keys.shared = "num_shared_experts";
  keys.usual_scale = 2.5;
  take_sigmoid_experts(c, keys);
  take_expert_layers(c, shape.layers, 1);
  take_rope(c, {});
}

/// Qwen 3's attention.
void read_hy_v3(Reader& c) {
  const Shape shape = take_silu_base(c, 1e-5);
  take_head_dim(c, 128);
  take_attention_bias(c, false, "all");
  c.set("qk_norm", true);
  c.only("mlp_bias", Node(false));
  SigmoidKeys keys;
  keys.experts = "num_experts";
  keys.shared = "num_shared_experts";
  keys.scale = "router_scaling_factor";
  keys.usual_scale = 2.826;
  take_sigmoid_experts(c, keys);
  take_expert_layers(c, shape.layers, 1);
  c.ignore({"enable_moe_fp32_combine"});  // where two sums meet; both are rounded after it
  take_rope(c, {11158840});
}

/// Arcee's Trinity: Qwen 3's attention behind a gate, norms on both sides of the branches; global layers do not rotate.
void read_afmoe(Reader& c) {
  const Shape shape = take_silu_base(c, 1e-5);
  take_head_dim(c, 128);
  take_attention_bias(c, false, "all");
  c.set("norm_placement", std::string("sandwich"));
  c.set("qk_norm", true);
  c.set("attn_gate", std::string("element"));
  if (c.flag("mup_enabled", false)) {
    c.set("embed_scale", 0.0);  // sqrt(dim)
  }
  const std::int64_t every = c.integer("global_attn_every_n_layers", 4);
  if (every < 1 && !c.has("layer_types")) {
    c.problem(format("global_attn_every_n_layers = {} is not understood; it must be at least 1", every));
  }
  const std::vector<std::string> kinds = take_layer_types(c, every_nth_global(shape.layers, every), sliding_window_or(c, 1024));
  rotate_sliding_layers(c, kinds, /*all_global_rotate=*/false);
  SigmoidKeys keys;
  keys.experts = "num_experts";
  keys.shared = "num_shared_experts";
  keys.usual_shared = 2;
  keys.scale = "route_scale";
  take_sigmoid_experts(c, keys);
  c.set("moe_first_dense", c.integer("num_dense_layers", 1));
  c.only("score_func", Node(std::string("sigmoid")));
  c.only("route_norm", Node(true));
  c.only("use_grouped_mm", Node(true));
  c.ignore({"load_balance_coeff"});
  take_rope(c, {});
}

}  // namespace kf::config::huggingface
