// Further families with experts: Granite MoE, Llama 4 (text), MiniMax M2, FlexOlmo, ERNIE 4.5.

#include <algorithm>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

Shape take_base(Reader& c, double eps) {
  c.ignore({"output_router_logits"});
  return take_silu_base(c, eps);
}

/// num_local_experts of width intermediate_size.
void take_local_experts(Reader& c, std::int64_t experts, std::int64_t top_k) {
  c.set("num_experts", c.integer("num_local_experts", experts));
  c.set("moe_top_k", c.integer("num_experts_per_tok", top_k));
  c.set("moe_ffn_dim", c.integer("intermediate_size"));
  c.set("moe_aux_loss_weight", c.real("router_aux_loss_coef", 0.001));
  c.ignore({"output_router_logits"});
  if (c.real("router_jitter_noise", 0) != 0) {
    c.problem("router_jitter_noise above 0 is not understood");
  }
}

/// Llama 4: layers that do not rotate see everything, the others see their chunk.
void take_chunks(Reader& c, std::int64_t layers) {
  const std::vector<bool> rotates = take_rotating_layers(c, layers, 4, /*empty_is_none=*/true);
  set_rotating_layers(c, rotates);
  const std::int64_t chunk = c.integer("attention_chunk_size", 0);
  std::vector<std::string> kinds = all_layers(layers, "global");
  for (std::size_t i = 0; chunk > 0 && i < kinds.size(); ++i) {
    kinds[i] = rotates[i] ? "chunk" : "global";
  }
  take_layer_types(c, kinds, 0);
  if (chunk > 0) {
    c.set("chunk", chunk);
  }
}

/// moe_layers names the layers with experts, from 0; every interleave_moe_layer_step-th without it.
void take_named_expert_layers(Reader& c, std::int64_t layers) {
  const std::int64_t step = c.integer("interleave_moe_layer_step", 1);
  std::vector<bool> experts(static_cast<std::size_t>(layers), false);
  const Array* const named = c.list("moe_layers");
  for (std::int64_t i = step; named == nullptr && step > 0 && i <= layers; i += step) {
    experts[static_cast<std::size_t>(i - 1)] = true;
  }
  for (const Node& node : named ? *named : Array()) {
    const auto* const layer = std::get_if<std::int64_t>(&node.value);
    if (layer == nullptr || *layer < 0 || *layer >= layers) {
      c.problem(format("moe_layers has {}, which is not understood; it names layers from 0 to {}", brief(node), layers - 1));
      return;
    }
    experts[static_cast<std::size_t>(*layer)] = true;
  }
  set_expert_layers(c, experts);
}

/// attn_temperature_tuning is a flag; older files hold a number.
bool take_tuning(Reader& c) {
  const Node* const node = c.node("attn_temperature_tuning");
  if (node == nullptr) {
    return true;
  }
  if (const auto* number = std::get_if<std::int64_t>(&node->value)) {
    return *number != 0;
  }
  return c.flag("attn_temperature_tuning", true);
}

}  // namespace

void take_granite_experts(Reader& c) {
  take_local_experts(c, 8, 2);
  c.set("moe_router", std::string("softmax_topk"));  // a softmax over the chosen logits is the same
  if (const std::int64_t shared = c.integer("shared_intermediate_size", 0); shared > 0) {
    c.set("moe_shared_experts", std::int64_t{1});
    c.set("moe_shared_ffn_dim", shared);
  }
}

/// Granite's factors; gate and up of an expert are one matrix in the file.
void read_granitemoeshared(Reader& c) {
  take_base(c, 1e-6);
  take_head_dim(c);
  take_attention_bias(c, false, "all");
  take_granite_experts(c);
  c.set("embed_scale", c.real("embedding_multiplier", 1));
  c.set("residual_scale", c.real("residual_multiplier", 1));
  c.set("attn_scale", c.real("attention_multiplier", 1));
  c.set("logit_scale", 1 / c.real("logits_scaling", 1));
  take_rope(c, {});
}

void read_granitemoe(Reader& c) {
  read_granitemoeshared(c);
  if (c.model().find("moe_shared_experts") != nullptr) {
    c.problem("shared_intermediate_size above 0 is not understood for granitemoe, whose class has no shared expert; granitemoeshared has");
  }
}

/// A token visits one expert and a shared one; its sigmoid multiplies what goes in.
void read_llama4_text(Reader& c) {
  const Shape shape = take_base(c, 1e-5);
  take_head_dim(c, 128);
  take_attention_bias(c, false, "all");
  if (c.flag("use_qk_norm", true)) {
    c.set("qk_norm", true);
    c.set("qk_norm_kind", std::string("l2"));
  }
  take_local_experts(c, 16, 1);
  c.set("ffn_hidden_dim", c.integer("intermediate_size_mlp", 16384));
  c.set("moe_router", std::string("sigmoid"));
  c.set("moe_weight_on_input", true);
  c.set("moe_shared_experts", std::int64_t{1});
  take_named_expert_layers(c, shape.layers);
  if (take_tuning(c)) {
    c.set("attn_temp_tuning", true);
    c.set("attn_temp_scale", c.real("attn_scale", 0.1));
    c.set("attn_temp_floor", c.integer("floor_scale", 8192));
  } else {
    c.ignore({"attn_scale", "floor_scale"});
  }
  take_chunks(c, shape.layers);
  c.ignore({"for_llm_compressor"});
  take_rope(c, {500000});
  c.set("rope_layout", std::string("interleaved"));
}

/// Norms over all heads together; every layer has experts.
void read_minimax_m2(Reader& c) {
  take_base(c, 1e-6);
  const std::int64_t head = c.integer("head_dim", 128);
  c.set("head_dim", head);
  c.only("use_qk_norm", Node(true));
  c.set("qk_norm", true);
  c.set("qk_norm_kind", std::string("full"));
  take_local_experts(c, 256, 8);
  c.set("moe_router", std::string("sigmoid"));
  c.set("moe_bias_rule", std::string("sign"));
  c.only("scoring_func", Node(std::string("sigmoid")));
  c.only("use_routing_bias", Node(true));
  const double fraction = static_cast<double>(c.integer("rotary_dim", head)) / static_cast<double>(head);
  RopeFamily rope{5000000, fraction};
  rope.partial = true;
  take_rope(c, rope);
}

/// Softmax scores, chosen by a bias besides; a dense prefix, neighbours rotate together.
void read_ernie4_5_moe(Reader& c) {
  const Shape shape = take_shape(c, true);
  take_rms_norm(c, "rms_norm_eps", 1e-5);
  take_activation(c, "hidden_act", "silu", true);
  take_head_dim(c);
  if (c.flag("use_bias", false)) {
    c.problem("use_bias = true is not understood for ernie4_5_moe, whose experts have none");
  }
  c.set("num_experts", c.integer("moe_num_experts", 64));
  c.set("moe_top_k", c.integer("moe_k", 6));
  const std::int64_t width = c.integer("moe_intermediate_size", 1536);
  c.set("moe_ffn_dim", width);
  if (const std::int64_t shared = c.integer("moe_num_shared_experts", 2); shared > 0) {
    c.set("moe_shared_experts", std::int64_t{1});
    c.set("moe_shared_ffn_dim", shared * width);
  }
  c.set("moe_router", std::string("softmax"));
  c.set("moe_norm_topk", true);
  c.set("moe_bias_rule", std::string("sign"));
  c.set("moe_aux_loss_weight", c.real("router_aux_loss_coef", 0.001));
  const std::int64_t first = c.integer("moe_layer_start_index", 1), every = c.integer("moe_layer_interval", 1);
  const std::int64_t given_last = c.integer("moe_layer_end_index", -1);
  const std::int64_t last = given_last == -1 ? shape.layers - 1 : given_last;
  if (every < 1 || first < 0) {
    c.problem(
        format("moe_layer_interval = {} and moe_layer_start_index = {} are not understood; they must be at least 1 and 0", every, first));
  }
  std::vector<bool> experts;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    experts.push_back(every > 0 && (i + 1) % every == 0 && i >= first && i <= last);
  }
  set_expert_layers(c, experts);
  c.only("moe_norm_min", Node(1e-12));
  c.ignore({"output_router_logits"});
  take_rope(c, {500000});
  c.set("rope_layout", std::string("interleaved"));
}

/// OLMo 2's norms behind the branches.
void read_flex_olmo(Reader& c) {
  take_base(c, 1e-6);
  take_head_dim(c);
  take_attention_bias(c, false, "all");
  c.set("norm_placement", std::string("post"));
  c.set("qk_norm", true);
  c.set("qk_norm_kind", std::string("full"));
  c.set("num_experts", c.integer("num_experts", c.integer("num_local_experts", 7)));
  c.set("moe_top_k", c.integer("num_experts_per_tok", 5));
  c.set("moe_ffn_dim", c.integer("intermediate_size"));
  c.set("moe_aux_loss_weight", c.real("router_aux_loss_coef", 0.01));
  c.set("moe_router", std::string(c.flag("norm_topk_prob", false) ? "softmax_topk" : "softmax"));
  take_rope(c, {500000});
}

}  // namespace kf::config::huggingface
