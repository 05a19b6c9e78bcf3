// Families with LayerNorm: GPT-2, StarCoder 2, StableLM, Nemotron, Cohere.

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// cohere and cohere2: one norm for both branches, neighbours rotate together, tied and scaled logits.
Shape take_cohere(Reader& c) {
  const Shape shape = take_shape(c, true);
  take_layer_norm(c, "layer_norm_eps", 1e-5, false);
  c.set("norm_placement", std::string("parallel"));
  c.set("logit_scale", c.real("logit_scale", 0.0625));
  take_activation(c, "hidden_act", "silu", true);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_attention_bias(c, false, "all");
  c.set("rope_layout", std::string("interleaved"));
  return shape;
}

}  // namespace

/// The names are GPT-2's own; matrices are stored (in, out).
void read_gpt2(Reader& c) {
  const std::int64_t dim = c.integer("n_embd");
  c.set("dim", dim);
  c.set("n_layers", c.integer("n_layer"));
  c.set("n_heads", c.integer("n_head"));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("n_positions"));
  c.set("ffn_hidden_dim", c.integer("n_inner", 4 * dim));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", true));
  take_layer_norm(c, "layer_norm_epsilon", 1e-5, true);
  take_activation(c, "activation_function", "gelu_new", false);
  c.set("attn_bias", std::string("all"));
  c.set("mlp_bias", true);
  c.set("pos_embedding", std::string("learned"));
  take_dropout(c, "attn_pdrop", "dropout_attn");
  take_dropout(c, "embd_pdrop", "dropout_embed");
  take_dropout(c, "resid_pdrop", "dropout_resid");
  if (!c.flag("scale_attn_weights", true)) {
    c.set("attn_scale", 1.0);
  }
  if (c.flag("scale_attn_by_inverse_layer_idx", false)) {
    c.set("attn_inverse_layer_scale", true);
  }
  c.ignore({"reorder_and_upcast_attn", "n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
            "summary_use_proj", "gradient_checkpointing"});
}

void read_starcoder2(Reader& c) {
  const Shape shape = take_shape(c, true);
  take_layer_norm(c, "norm_epsilon", 1e-5, true);
  take_activation(c, "hidden_act", "gelu_pytorch_tanh", false);
  if (c.flag("use_bias", true)) {
    c.set("attn_bias", std::string("all"));
    c.set("mlp_bias", true);
  }
  take_head_dim(c);
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_dropout(c, "embedding_dropout", "dropout_embed");
  take_dropout(c, "residual_dropout", "dropout_resid");
  const std::int64_t window = c.integer("sliding_window", 0);
  take_layer_types(c, all_layers(shape.layers, window > 0 ? "local" : "global"), window);
  take_rope(c, {});
}

void read_stablelm(Reader& c) {
  take_shape(c, false);
  take_layer_norm(c, "layer_norm_eps", 1e-5, true);
  take_activation(c, "hidden_act", "silu", true);
  if (c.flag("use_qkv_bias", false)) {
    c.set("attn_bias", std::string("qkv"));
  }
  if (c.flag("use_parallel_residual", false)) {
    c.set("norm_placement", std::string("parallel"));
  }
  if (c.flag("qk_layernorm", false)) {
    set_qk_layer_norm(c, "each", false);
  }
  take_dropout(c, "attention_dropout", "dropout_attn");
  if (c.real("hidden_dropout", 0) != 0) {
    c.problem("hidden_dropout above 0 is not understood for stablelm, which drops after the feed-forward layer only");
  }
  take_rope(c, {10000, 0.25});
}

/// LayerNorm of 1 + weight, a squared ReLU without a gate, half of every head rotates.
void read_nemotron(Reader& c) {
  take_shape(c, false);
  take_head_dim(c);
  take_layer_norm(c, "norm_eps", 1e-5, true);
  c.set("norm_unit_offset", true);
  take_activation(c, "hidden_act", "relu2", false);
  take_attention_bias(c, false, "all");
  if (c.flag("mlp_bias", false)) {
    c.set("mlp_bias", true);
  }
  take_dropout(c, "attention_dropout", "dropout_attn");
  c.only("rope_percent", Node(0.5));
  take_rope(c, {10000, 0.5});
}

/// q, k and v of a head lie together; a LayerNorm of queries and keys, a squared ReLU without a gate.
void read_persimmon(Reader& c) {
  take_shape(c, false);
  take_layer_norm(c, "layer_norm_eps", 1e-5, true);
  take_activation(c, "hidden_act", "relu2", false);
  c.set("attn_bias", std::string("all"));
  c.set("mlp_bias", true);
  c.only("num_key_value_heads", Node());
  if (c.flag("qk_layernorm", true)) {
    set_qk_layer_norm(c, "head", true);
  }
  take_dropout(c, "attention_dropout", "dropout_attn");
  if (c.real("hidden_dropout", 0) != 0) {
    c.problem("hidden_dropout above 0 is not understood for persimmon, which drops after the feed-forward layer only");
  }
  take_rope(c, {10000, 0.5});
}

void read_cohere(Reader& c) {
  take_cohere(c);
  if (c.flag("use_qk_norm", false)) {
    set_qk_layer_norm(c, "each", false);
  }
  take_head_dim(c);
  take_rope(c, {500000});
}

/// Sliding layers rotate, global ones do not.
void read_cohere2(Reader& c) {
  const Shape shape = take_cohere(c);
  take_head_dim(c);
  const std::int64_t every = c.integer("sliding_window_pattern", c.integer("_sliding_window_pattern", 4));
  const std::vector<std::string> kinds = take_layer_types(c, every_nth_global(shape.layers, every), sliding_window_or(c, 4096));
  rotate_sliding_layers(c, kinds, /*all_global_rotate=*/false);
  c.only("use_gated_activation", Node(true));
  c.only("use_embedding_sharing", Node(true));
  c.only("use_parallel_block", Node(true));
  c.only("use_parallel_embedding", Node(false));
  c.only("position_embedding_type", Node(std::string("rope_gptj")));
  c.only("order_of_interleaved_layers", Node(std::string("local_attn_first")));
  if (c.has("layer_types")) {
    c.ignore({"layer_switch"});
  } else {
    c.only("layer_switch", Node(every));
  }
  c.only("rotary_pct", Node(1.0));
  take_rope(c, {});
}

}  // namespace kf::config::huggingface
