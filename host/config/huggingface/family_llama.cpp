// Llama and its nearest relatives: RMS norms before, SwiGLU, rotary positions.

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// What all of them share; eps and theta are the classes' defaults.
void take_mlp_bias(Reader& c, const std::string& key, bool fallback) {
  if (c.flag(key, fallback)) {
    c.set("mlp_bias", true);
  }
}

/// sliding_window on every layer, where it is given.
void take_window(Reader& c, std::int64_t layers) {
  const std::int64_t window = c.integer("sliding_window", 0);
  take_layer_types(c, all_layers(layers, window > 0 ? "local" : "global"), window);
}

}  // namespace

void read_llama(Reader& c) {
  take_rms_base(c, 1e-6, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "all");
  take_mlp_bias(c, "mlp_bias", false);
  take_rope(c, {});
}

void read_mistral(Reader& c) {
  const Shape shape = take_rms_base(c, 1e-6, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_window(c, shape.layers);
  take_rope(c, {});
}

void read_ministral(Reader& c) { read_mistral(c); }

/// Llama 3 with windows; every fourth layer, from the first, sees everything.
void read_cwm(Reader& c) {
  const Shape shape = take_rms_base(c, 1e-5, false);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  take_mlp_bias(c, "mlp_bias", false);
  std::vector<std::string> kinds = all_layers(shape.layers, "local");
  for (std::size_t i = 0; i < kinds.size(); i += 4) {
    kinds[i] = "global";
  }
  take_layer_types(c, kinds, sliding_window_or(c, 8192));
  RopeFamily rope;
  rope.theta = 1000000;
  rope.stretched = true;
  take_rope(c, rope);
}

/// Some layers do not rotate; with use_sliding_window those alone slide.
void read_smollm3(Reader& c) {
  const Shape shape = take_rms_base(c, 1e-6, true);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "all");
  take_mlp_bias(c, "mlp_bias", false);
  const std::vector<bool> rotates = take_rotating_layers(c, shape.layers, 4, /*empty_is_none=*/false);
  set_rotating_layers(c, rotates);
  const bool on = c.flag("use_sliding_window", false);
  const std::int64_t window = c.integer("sliding_window", 0);
  std::vector<std::string> kinds = all_layers(shape.layers, "global");
  for (std::size_t i = 0; on && window > 0 && i < kinds.size(); ++i) {
    kinds[i] = rotates[i] ? "global" : "local";
  }
  take_layer_types(c, kinds, on ? window : 0);
  take_rope(c, {2000000});
}

/// Llama with factors on the embedding, the branches, the scores and the logits.
void read_granite(Reader& c) {
  read_llama(c);
  c.set("embed_scale", c.real("embedding_multiplier", 1));
  c.set("residual_scale", c.real("residual_multiplier", 1));
  c.set("attn_scale", c.real("attention_multiplier", 1));
  c.set("logit_scale", 1 / c.real("logits_scaling", 1));
}

/// A squared ReLU without a gate.
void read_arcee(Reader& c) {
  take_rms_base(c, 1e-5, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "relu2", false);
  take_attention_bias(c, false, "all");
  take_mlp_bias(c, "mlp_bias", false);
  take_rope(c, {});
}

void read_seed_oss(Reader& c) {
  take_rms_base(c, 1e-6, false);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  const bool out = c.flag("attention_out_bias", false);
  take_attention_bias(c, true, out ? "all" : "qkv");
  if (out && !c.model().find("attn_bias")) {
    c.problem("attention_out_bias = true without attention_bias is not understood");
  }
  take_mlp_bias(c, "mlp_bias", false);
  take_dropout(c, "residual_dropout", "dropout_resid");
  take_rope(c, {});
}

/// Neighbours rotate together.
void read_helium(Reader& c) {
  take_rms_base(c, 1e-8, false);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, false, "qkv");
  take_mlp_bias(c, "mlp_bias", false);
  take_rope(c, {100000});
  c.set("rope_layout", std::string("interleaved"));
}

void read_ernie4_5(Reader& c) {
  take_rms_base(c, 1e-5, true);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  if (c.flag("use_bias", false)) {
    c.set("attn_bias", std::string("all"));
    c.set("mlp_bias", true);
  }
  take_rope(c, {500000});
  c.set("rope_layout", std::string("interleaved"));
}

/// One matrix for q, k, v and one for gate and up in the file.
void read_phi3(Reader& c) {
  const Shape shape = take_rms_base(c, 1e-5, false);
  take_head_dim(c);
  take_activation(c, "hidden_act", "silu", true);
  take_dropout(c, "resid_pdrop", "dropout_resid");
  take_dropout(c, "embd_pdrop", "dropout_embed");
  take_window(c, shape.layers);
  RopeFamily rope;
  rope.partial = true;
  take_rope(c, rope);
}

/// Half of every head rotates, neighbours together; biases on q, k, v.
void read_glm(Reader& c) {
  take_rms_base(c, 1.5625e-7, false);
  take_head_dim(c, 128);
  take_activation(c, "hidden_act", "silu", true);
  take_attention_bias(c, true, "qkv");
  take_rope(c, {10000, 0.5});
  c.set("rope_layout", std::string("interleaved"));
}

void read_glm4(Reader& c) {
  read_glm(c);
  c.set("norm_placement", std::string("sandwich"));
}

}  // namespace kf::config::huggingface
