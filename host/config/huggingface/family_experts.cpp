// Families with mixtures of experts.

#include <algorithm>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

Shape take_base(Reader& c, double eps, bool tied) {
  const Shape shape = take_shape(c, tied);
  take_rms_norm(c, "rms_norm_eps", eps);
  take_dropout(c, "attention_dropout", "dropout_attn");
  c.ignore({"output_router_logits"});
  return shape;
}

/// Experts, how many a token visits, and the weight of the balance loss (the classes add it to the loss on request).
void take_experts(Reader& c, std::int64_t experts, std::int64_t top_k, double balance) {
  c.set("num_experts", experts);
  if (const Node* width = c.model().find("ffn_hidden_dim")) {
    c.set("moe_ffn_dim", width->value);  // to the digit; a derived width would be rounded to a multiple of 16
  }
  c.set("moe_top_k", c.integer("num_experts_per_tok", top_k));
  c.set("moe_aux_loss_weight", c.real("router_aux_loss_coef", balance));
}

/// Softmax over all experts; the chosen weights are divided by their sum or not.
void set_softmax(Reader& c, bool normalised) { c.set("moe_router", std::string(normalised ? "softmax_topk" : "softmax")); }

/// Experts in every decoder_sparse_step-th layer; mlp_only_layers may name the first ones.
void take_sparse_layers(Reader& c) {
  c.set("moe_frequency", c.integer("decoder_sparse_step", 1));
  const Array* dense = c.list("mlp_only_layers");
  for (std::size_t i = 0; dense && i < dense->size(); ++i) {
    if ((*dense)[i] != Node(static_cast<std::int64_t>(i))) {
      c.problem("mlp_only_layers is understood where it names the first layers");
      return;
    }
  }
  if (dense && !dense->empty()) {
    c.set("moe_first_dense", static_cast<std::int64_t>(dense->size()));
  }
}

void take_windows(Reader& c, std::int64_t layers, bool max_window_layers) {
  const bool on = c.flag("use_sliding_window", false);
  const std::int64_t window = c.integer("sliding_window", 0);
  const std::int64_t first = max_window_layers ? c.integer("max_window_layers", 28) : 0;
  c.ignore({"max_window_layers"});
  std::vector<std::string> kinds = all_layers(layers, "global");
  for (std::int64_t i = std::max<std::int64_t>(first, 0); on && window > 0 && i < layers; ++i) {
    kinds[static_cast<std::size_t>(i)] = "local";
  }
  take_layer_types(c, kinds, on ? window : 0);
}

/// What deepseek_v2 and deepseek_v3 share: latent attention, a dense prefix, shared experts as one wide layer.
void take_deepseek(Reader& c, std::int64_t first_dense) {
  take_base(c, 1e-6, false);
  if (const Node* eps = c.model().find("norm_eps"); eps && *eps != Node(1e-6)) {
    c.problem("rms_norm_eps other than 1e-06 is not understood: the class keeps 1e-06 in the norms of the latents");
  }
  take_activation(c, "hidden_act", "silu", true);
  c.set("attention", std::string("mla"));
  const std::int64_t rope = c.integer("qk_rope_head_dim", 64);
  const std::int64_t nope = c.integer("qk_nope_head_dim", 128);
  c.only("head_dim", Node(rope));
  c.only("qk_head_dim", Node(rope + nope));
  c.set("mla_rope_dim", rope);
  c.set("mla_nope_dim", nope);
  c.set("mla_v_dim", c.integer("v_head_dim", 128));
  c.set("mla_kv_rank", c.integer("kv_lora_rank", 512));
  c.set("mla_q_rank", c.integer("q_lora_rank", 0));
  take_attention_bias(c, false, "all");
  take_rope(c, {10000, 1, /*squared_mscale=*/true});

  c.set("num_experts", c.integer("n_routed_experts"));
  c.set("moe_top_k", c.integer("num_experts_per_tok"));
  c.set("moe_first_dense", c.integer("first_k_dense_replace", first_dense));
  c.only("moe_layer_freq", Node(std::int64_t{1}));
  const std::int64_t width = c.integer("moe_intermediate_size");
  c.set("moe_ffn_dim", width);
  const std::int64_t shared = c.integer("n_shared_experts");
  if (shared > 0) {
    c.set("moe_shared_experts", std::int64_t{1});
    c.set("moe_shared_ffn_dim", shared * width);
  }
  c.set("moe_routed_scale", c.real("routed_scaling_factor", 1));
  c.ignore({"aux_loss_alpha", "seq_aux", "ep_size", "router_aux_loss_coef", "num_nextn_predict_layers"});
  c.set("moe_aux_loss_weight", 0.0);  // the class has none
}

}  // namespace

void read_mixtral(Reader& c) {
  const Shape shape = take_base(c, 1e-5, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_experts(c, c.integer("num_local_experts", 8), 2, 0.001);
  set_softmax(c, true);
  if (c.real("router_jitter_noise", 0) != 0) {
    c.problem("router_jitter_noise above 0 is not understood");
  }
  const std::int64_t window = c.integer("sliding_window", 0);
  take_layer_types(c, all_layers(shape.layers, window > 0 ? "local" : "global"), window);
  take_rope(c, {1000000});
}

void read_qwen2_moe(Reader& c) {
  const Shape shape = take_base(c, 1e-6, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  if (c.flag("qkv_bias", true)) {
    c.set("attn_bias", std::string("qkv"));
  }
  take_experts(c, c.integer("num_experts", c.integer("num_local_experts", 60)), 4, 0.001);
  set_softmax(c, c.flag("norm_topk_prob", false));
  take_sparse_layers(c);
  c.set("moe_ffn_dim", c.integer("moe_intermediate_size", 1408));
  c.set("moe_shared_experts", std::int64_t{1});
  c.set("moe_shared_ffn_dim", c.integer("shared_expert_intermediate_size", 5632));
  c.set("moe_shared_gate", true);
  take_windows(c, shape.layers, true);
  take_rope(c, {});
}

void read_qwen3_moe(Reader& c) {
  const Shape shape = take_base(c, 1e-6, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "all");
  c.set("qk_norm", true);
  take_experts(c, c.integer("num_experts", c.integer("num_local_experts", 128)), 8, 0.001);
  set_softmax(c, c.flag("norm_topk_prob", false));
  take_sparse_layers(c);
  c.set("moe_ffn_dim", c.integer("moe_intermediate_size", 768));
  take_windows(c, shape.layers, false);
  take_rope(c, {});
}

void read_olmoe(Reader& c) {
  take_base(c, 1e-5, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "all");
  c.set("qk_norm", true);
  c.set("qk_norm_kind", std::string("full"));
  take_clip(c);
  take_experts(c, c.integer("num_experts", c.integer("num_local_experts", 64)), 8, 0.01);
  set_softmax(c, c.flag("norm_topk_prob", false));
  take_rope(c, {});
}

/// Sinks, clamped gates, biases everywhere, every second layer sliding.
void read_gpt_oss(Reader& c) {
  const Shape shape = take_base(c, 1e-5, false);
  take_head_dim(c, 64);
  c.only("hidden_act", Node(std::string("silu")));
  c.set("activation", std::string("swiglu_oai"));
  c.set("mlp_act_limit", c.real("swiglu_limit", 7));
  c.only("swiglu_alpha", Node(1.702));
  take_attention_bias(c, true, "all");
  c.set("mlp_bias", true);
  c.set("moe_router_bias", true);
  c.set("attn_sink", true);
  const std::int64_t top_k = c.integer("experts_per_token", 4);
  take_experts(c, c.integer("num_local_experts", c.integer("num_experts", 128)), top_k, 0.001);
  set_softmax(c, true);
  std::vector<std::string> kinds = all_layers(shape.layers, "global");
  for (std::size_t i = 0; i < kinds.size(); i += 2) {
    kinds[i] = "local";
  }
  take_layer_types(c, kinds, c.integer("sliding_window", 128));
  c.ignore({"initial_context_length"});
  take_rope(c, {150000});
}

void read_deepseek_v2(Reader& c) {
  take_deepseek(c, 0);
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
  take_deepseek(c, 3);
  c.set("rope_layout", std::string(c.flag("rope_interleave", true) ? "interleaved" : "half"));
  c.only("topk_method", Node(std::string("noaux_tc")));
  c.only("scoring_func", Node(std::string("sigmoid")));
  c.set("moe_router", std::string("sigmoid"));
  c.only("norm_topk_prob", Node(true));  // sigmoid weights are always divided by their sum here
  c.set("moe_bias_rule", std::string("sign"));
  const std::int64_t groups = c.integer("n_group", 8);
  const std::int64_t kept = c.integer("topk_group", 4);
  if (groups > 1) {
    c.set("moe_groups", groups);
    c.set("moe_topk_groups", kept);
  }
}

}  // namespace kf::config::huggingface
