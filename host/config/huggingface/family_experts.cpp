// Families with mixtures of experts.

#include <algorithm>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

Shape take_base(Reader& c, double eps, bool tied) {
  c.ignore({"output_router_logits"});
  return take_rms_base(c, eps, tied);
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

/// Experts in every decoder_sparse_step-th layer, but for those that mlp_only_layers names (from 0).
void take_sparse_layers(Reader& c, std::int64_t layers) {
  const std::int64_t step = c.integer("decoder_sparse_step", 1);
  if (step < 1) {
    c.problem(format("decoder_sparse_step = {} is not understood; it must be at least 1", step));
  }
  std::vector<bool> experts;
  for (std::int64_t i = 1; i <= layers; ++i) {
    experts.push_back(step > 0 && i % step == 0);
  }
  const Array* const dense = c.list("mlp_only_layers");
  for (const Node& node : dense ? *dense : Array()) {
    const auto* const layer = std::get_if<std::int64_t>(&node.value);
    if (layer == nullptr || *layer < 0) {
      c.problem(format("mlp_only_layers has {}, which is not understood; it names layers from 0 on", brief(node)));
      return;
    }
    if (*layer < layers) {
      experts[static_cast<std::size_t>(*layer)] = false;
    }
  }
  set_expert_layers(c, experts);
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
  take_sparse_layers(c, shape.layers);
  c.set("moe_ffn_dim", c.integer("moe_intermediate_size", 1408));
  c.set("moe_shared_experts", std::int64_t{1});
  const std::int64_t shared = c.integer("shared_expert_intermediate_size", 5632);
  if (shared < 1) {
    c.problem(format("shared_expert_intermediate_size = {} is not understood: layers of this family always have a shared expert", shared));
  }
  c.set("moe_shared_ffn_dim", shared);
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
  take_sparse_layers(c, shape.layers);
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
  take_layer_types(c, kinds, sliding_window_or(c, 128));
  c.ignore({"initial_context_length"});
  RopeFamily rope;
  rope.theta = 150000;
  rope.stretched = true;
  take_rope(c, rope);
}

/// Qwen 3 with windows and bases by kind of layer; only mtp_ layers are dense or not, which no forward reads.
void read_mellum(Reader& c) {
  const Shape shape = take_base(c, 1e-6, false);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "all");
  c.set("qk_norm", true);
  take_experts(c, c.integer(one_of_names(c, "num_experts", "num_local_experts"), 64), 8, 0.001);
  set_softmax(c, c.flag("norm_topk_prob", true));
  take_expert_layers(c, shape.layers, 0);
  c.set("moe_ffn_dim", c.integer("moe_intermediate_size", 896));
  take_layer_types(c, all_layers(shape.layers, "global"), sliding_window_or(c, 1024));
  take_two_ropes(c, 500000, 10000);
  c.ignore({"num_nextn_predict_layers", "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"});
}

}  // namespace kf::config::huggingface
