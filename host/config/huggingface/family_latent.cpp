// Families with multi-head latent attention: DeepSeek V2 and V3, Youtu, MiniCPM 3, GLM 4.7 Flash, Sarvam 105B.

#include <algorithm>
#include <cmath>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

constexpr double kLatentEps = 1e-6;  // of the norms over the latents, in all of these classes

struct LatentDefaults {
  double eps = 1e-6;
  bool tied = false;
  std::int64_t v_dim = 128;
  std::int64_t nope = 128, rope = 64;
  std::int64_t kv_rank = 512, q_rank = 1536;  // null: queries are projected directly
  bool other_head_dim = false;                // head_dim may also be the width of what a cache holds
};

/// Everything but the feed-forward layers.
Shape take_latent(Reader& c, const LatentDefaults& usual) {
  const Shape shape = take_shape(c, usual.tied);
  take_rms_norm(c, "rms_norm_eps", usual.eps);
  if (*c.model().find("norm_eps") != Node(kLatentEps)) {
    c.set("mla_norm_eps", kLatentEps);
  }
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_activation(c, "hidden_act", "silu", true);
  c.set("attention", std::string("mla"));
  const std::int64_t rope = c.integer("qk_rope_head_dim", usual.rope);
  const std::int64_t nope = c.integer("qk_nope_head_dim", usual.nope);
  const std::int64_t kv_rank = c.integer("kv_lora_rank", usual.kv_rank);
  if (!usual.other_head_dim || c.integer("head_dim", rope) != kv_rank + rope) {
    c.only("head_dim", Node(rope));
  }
  c.only("qk_head_dim", Node(rope + nope));
  c.set("mla_rope_dim", rope);
  c.set("mla_nope_dim", nope);
  c.set("mla_v_dim", c.integer("v_head_dim", usual.v_dim));
  c.set("mla_kv_rank", kv_rank);
  c.set("mla_q_rank", c.integer("q_lora_rank", c.given("q_lora_rank") ? 0 : usual.q_rank));
  take_attention_bias(c, false, "all");
  take_rope(c, {10000, 1, /*squared_mscale=*/true});
  if (c.model().find("rope_fraction") != nullptr) {
    c.problem("partial_rotary_factor other than 1 is not understood: qk_rope_head_dim says what rotates");
  }
  return shape;
}

void take_interleave(Reader& c) { c.set("rope_layout", std::string(c.flag("rope_interleave", true) ? "interleaved" : "half")); }

/// DeepSeek's experts: a dense prefix, shared experts as one wide layer.
void take_deepseek_experts(Reader& c, std::int64_t first_dense, const char* experts = "n_routed_experts",
                           const char* shared_experts = "n_shared_experts") {
  c.set("num_experts", c.integer(experts));
  c.set("moe_top_k", c.integer("num_experts_per_tok"));
  c.set("moe_first_dense", c.integer("first_k_dense_replace", first_dense));
  c.only("moe_layer_freq", Node(std::int64_t{1}));
  const std::int64_t width = c.integer("moe_intermediate_size");
  c.set("moe_ffn_dim", width);
  const std::int64_t shared = c.integer(shared_experts);
  if (shared > 0) {
    c.set("moe_shared_experts", std::int64_t{1});
    c.set("moe_shared_ffn_dim", shared * width);
  }
  c.set("moe_routed_scale", c.real("routed_scaling_factor", 1));
  c.ignore({"aux_loss_alpha", "seq_aux", "ep_size", "router_aux_loss_coef", "num_nextn_predict_layers", "output_router_logits"});
  c.set("moe_aux_loss_weight", 0.0);  // the class has none
}

/// sigmoid + selection bias, in groups.
void take_deepseek_router(Reader& c, std::int64_t groups_before, std::int64_t kept_before) {
  c.only("topk_method", Node(std::string("noaux_tc")));
  c.only("scoring_func", Node(std::string("sigmoid")));
  c.set("moe_router", std::string("sigmoid"));
  c.only("norm_topk_prob", Node(true));  // sigmoid weights are always divided by their sum here
  c.set("moe_bias_rule", std::string("sign"));
  take_router_groups(c, groups_before, kept_before);
}

}  // namespace

void read_deepseek_v2(Reader& c) {
  take_latent(c, {});
  take_deepseek_experts(c, 0);
  c.set("rope_layout", std::string("interleaved"));
  if (c.flag("mlp_bias", false)) {
    c.set("mlp_bias", true);
  }
  const std::string method = c.text("topk_method", "greedy");
  const std::int64_t groups = c.integer("n_group", 0), kept = c.integer("topk_group", 0);
  if (method == "group_limited_greedy") {  // groups rank by their best expert, as with our router softmax
    c.set("moe_groups", groups);
    c.set("moe_topk_groups", kept);
  } else if (method != "greedy") {
    c.problem("topk_method = '" + method + "' is not understood; it may be greedy or group_limited_greedy");
  }
  c.only("scoring_func", Node(std::string("softmax")));
  c.ignore({"norm_topk_prob"});  // the class never divides
  c.set("moe_router", std::string("softmax"));
}

void read_deepseek_v3(Reader& c) {
  take_latent(c, {});
  take_deepseek_experts(c, 3);
  take_interleave(c);
  take_deepseek_router(c, 8, 4);
}

/// DeepSeek V3 under other names of three keys.
void read_sarvam_mla(Reader& c) {
  LatentDefaults usual;
  usual.other_head_dim = true;
  usual.q_rank = 0;
  take_latent(c, usual);
  c.only("q_head_dim", Node(c.integer("qk_nope_head_dim", usual.nope) + c.integer("qk_rope_head_dim", usual.rope)));
  take_deepseek_experts(c, 1, one_of_names(c, "num_experts", "n_routed_experts"),
                        one_of_names(c, "num_shared_experts", "n_shared_experts"));
  take_interleave(c);
  take_deepseek_router(c, 1, 1);
}

/// A dense DeepSeek V3.
void read_youtu(Reader& c) {
  LatentDefaults usual;
  usual.tied = true;
  const Shape shape = take_latent(c, usual);
  const double std = c.real("initializer_range", 2 / std::sqrt(5 * static_cast<double>(shape.dim)));
  c.set("init_std", std);
  c.set("embed_init_std", c.real("embedding_initializer_range", 2 * std));
  take_interleave(c);
}

/// Factors on the embedding, the branches and the logits; pairs rotate as halves.
void read_minicpm3(Reader& c) {
  LatentDefaults usual;
  usual.eps = 1e-5;
  usual.tied = true;
  usual.kv_rank = 256;
  usual.q_rank = 768;
  usual.nope = 64;
  usual.rope = 32;
  const std::int64_t heads = c.integer("num_attention_heads");
  const std::int64_t dim = c.integer("hidden_size");
  usual.v_dim = head_width(dim, heads);
  const Shape shape = take_latent(c, usual);
  c.set("embed_scale", c.real("scale_emb", 12));
  c.set("residual_scale", c.real("scale_depth", 1.4) / std::sqrt(static_cast<double>(std::max<std::int64_t>(shape.layers, 1))));
  c.set("logit_scale", static_cast<double>(c.integer("dim_model_base", 256)) / static_cast<double>(std::max<std::int64_t>(dim, 1)));
  if (c.flag("mlp_bias", false)) {
    c.set("mlp_bias", true);
  }
}

void read_glm4_moe_lite(Reader& c) {
  LatentDefaults usual;
  usual.eps = 1e-5;
  usual.v_dim = 256;
  usual.q_rank = 768;
  usual.nope = 192;
  const Shape shape = take_latent(c, usual);
  take_deepseek_experts(c, 1);
  take_expert_layers(c, shape.layers, 1);
  take_interleave(c);
  take_deepseek_router(c, 1, 1);
}

}  // namespace kf::config::huggingface
