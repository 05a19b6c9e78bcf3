// Gemma 1, 2 and 3 (text): scaled embeddings, norms of 1 + weight, GeGLU.

#include <cmath>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"

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

}  // namespace kf::config::huggingface
