// Gemma 1, 2 and 3 (text): scaled embeddings, norms of 1 + weight, GeGLU.

#include <algorithm>
#include <cmath>
#include <optional>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

Shape take_base(Reader& c) {
  const Shape shape = take_shape(c, true);
  take_head_dim(c, 256);
  take_rms_norm(c, "rms_norm_eps", 1e-6);
  c.set("norm_unit_offset", true);
  c.set("embed_scale", 0.0);  // sqrt(dim)
  take_attention_bias(c, false, "all");
  take_dropout(c, "attention_dropout", "dropout_attn");
  c.only("use_bidirectional_attention", Node(false));
  return shape;
}

void take_sandwich(Reader& c) {
  c.set("norm_placement", std::string("sandwich"));
  c.set("attn_scale", 1 / std::sqrt(c.real("query_pre_attn_scalar", 256)));
}

}  // namespace

/// hidden_act = "gelu" is a legacy value that means the tanh approximation, as transformers reads it.
void read_gemma(Reader& c) {
  take_base(c);
  const std::string name = c.text("hidden_act", "gelu_pytorch_tanh");
  if (name == "gelu" || c.has("hidden_activation")) {
    take_activation(c, "hidden_activation", "gelu_pytorch_tanh", true);
  } else {
    take_activation(c, "hidden_act", "gelu_pytorch_tanh", true);
    c.ignore({"hidden_activation"});
  }
  take_rope(c, {});
}

void read_gemma2(Reader& c) {
  const Shape shape = take_base(c);
  take_activation(c, "hidden_activation", "gelu_pytorch_tanh", true);
  c.ignore({"hidden_act", "cache_implementation"});  // not read by the class
  take_sandwich(c);
  take_cap(c, "attn_logit_softcapping", "attn_softcap", 50);
  take_cap(c, "final_logit_softcapping", "final_logit_softcap", 30);
  std::vector<std::string> kinds = all_layers(shape.layers, "global");
  for (std::size_t i = 0; i < kinds.size(); i += 2) {
    kinds[i] = "local";
  }
  take_layer_types(c, kinds, sliding_window_or(c, 4096));
  take_rope(c, {});
}

/// Gemma 2 without the norms behind the branches.
void read_vaultgemma(Reader& c) {
  read_gemma2(c);
  c.set("norm_placement", std::string("pre"));
}

void read_gemma3(Reader& c) {
  const Shape shape = take_base(c);
  take_activation(c, "hidden_activation", "gelu_pytorch_tanh", true);
  c.set("qk_norm", true);
  take_sandwich(c);
  if (c.has("attn_logit_softcapping")) {
    c.problem("attn_logit_softcapping is not understood: the class of gemma3 does not cap its scores; null is");
  }
  c.ignore({"attn_logit_softcapping"});
  take_cap(c, "final_logit_softcapping", "final_logit_softcap", 0);
  const std::int64_t pattern = c.integer("sliding_window_pattern", c.integer("_sliding_window_pattern", 6));
  take_layer_types(c, every_nth_global(shape.layers, pattern), sliding_window_or(c, 4096));
  take_two_ropes(c, 1000000, 10000);
}

namespace {

/// The width of heads and the key and value heads of global layers: per_layer_config (transformers 5.2x), or global_head_dim and
/// num_global_key_value_heads.
void take_global_heads(Reader& c, const std::vector<std::string>& kinds, bool keys_are_values) {
  const std::optional<std::int64_t> width = c.maybe_integer("global_head_dim");
  const std::optional<std::int64_t> heads = c.maybe_integer("num_global_key_value_heads");
  const Table* const layers = c.table("per_layer_config");
  if (layers == nullptr) {
    c.set("global_head_dim", width.value_or(512));
    if (heads && keys_are_values) {
      c.set("global_kv_heads", *heads);
    }
    return;
  }
  const Table* first = nullptr;
  std::size_t named = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Node* const node = layers->find(std::to_string(i));
    if (node == nullptr) {
      continue;
    }
    first = first != nullptr ? first : node->table();
    named += kinds[i] == "global" && node->table() != nullptr && *node->table() == *first ? 1 : 0;
  }
  if (named != layers->size() || static_cast<std::ptrdiff_t>(named) != std::count(kinds.begin(), kinds.end(), "global")) {
    c.problem("per_layer_config is understood where it gives all full_attention layers the same, and no other layer anything");
    return;
  }
  if (first != nullptr) {
    Reader inner(*first);
    if (const std::optional<std::int64_t> own = inner.maybe_integer("head_dim")) {
      c.set("global_head_dim", *own);
    }
    if (const std::optional<std::int64_t> own = inner.maybe_integer("num_key_value_heads")) {
      c.set("global_kv_heads", *own);
    }
    for (const std::string& problem : inner.problems()) {
      c.problem("per_layer_config." + problem);
    }
  }
}

}  // namespace

/// Gemma 4: normed values, scores without a scale, wider heads and keys that are values in global layers, a number behind each block, a
/// dense layer beside the experts. Embeddings by layer and shared keys (E2B, E4B) are not built.
void read_gemma4(Reader& c) {
  const Shape shape = take_shape(c, true);
  take_head_dim(c, 256);
  take_rms_norm(c, "rms_norm_eps", 1e-6);
  c.set("embed_scale", 0.0);  // sqrt(dim)
  c.set("norm_placement", std::string("sandwich"));
  take_attention_bias(c, false, "all");
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_activation(c, "hidden_activation", "gelu_pytorch_tanh", true);
  c.set("attn_scale", 1.0);
  c.set("qk_norm", true);
  c.set("v_norm", std::string("plain"));
  c.set("layer_scalar", true);
  take_cap(c, "final_logit_softcapping", "final_logit_softcap", 0);
  if (const Node* const kind = c.node("use_bidirectional_attention"); kind != nullptr && *kind != Node(std::string("vision"))) {
    c.problem(format("use_bidirectional_attention = {} is not understood; null and 'vision', which leaves text alone, are", brief(*kind)));
  }
  std::vector<std::string> usual = every_nth_global(shape.layers, 6);
  if (!usual.empty()) {
    usual.back() = "global";
  }
  const std::vector<std::string> kinds = take_layer_types(c, usual, sliding_window_or(c, 512));
  if (!kinds.empty() && kinds.back() != "global") {
    c.problem("the last of layer_types is no full_attention, which the class makes of it");
  }
  const bool same = c.flag("attention_k_eq_v", false);
  c.set("global_k_is_v", same);
  take_global_heads(c, kinds, same);
  take_proportional_ropes(c);
  if (c.flag("enable_moe_block", false)) {
    c.set("num_experts", c.integer("num_experts"));
    c.set("moe_top_k", c.integer("top_k_experts"));
    c.set("moe_ffn_dim", c.integer("moe_intermediate_size"));
    c.set("moe_router", std::string("softmax_normed"));
    c.set("moe_beside_dense", true);
    c.set("moe_aux_loss_weight", 0.0);  // the class has none
  }
  c.ignore({"num_experts", "top_k_experts", "moe_intermediate_size"});
  if (const std::int64_t width = c.integer("hidden_size_per_layer_input", 256); width != 0) {
    c.problem(format("hidden_size_per_layer_input = {} is not understood: embeddings by layer (Gemma 4 E2B and E4B) are not built", width));
  }
  if (const std::int64_t sharing = c.integer("num_kv_shared_layers", 0); sharing != 0) {
    c.problem(format("num_kv_shared_layers = {} is not understood: keys of other layers (Gemma 4 E2B and E4B) are not built", sharing));
  }
  c.ignore({"vocab_size_per_layer_input", "use_double_wide_mlp"});  // they act with the two above
}

}  // namespace kf::config::huggingface
