// Older families: GPT-J, GPT-Neo, GPT-NeoX (Pythia), Phi 1 and 2, Falcon, BLOOM, OPT, StarCoder 1.

#include <cmath>

#include "config/huggingface/common.h"
#include "config/huggingface/families.h"
#include "core/text.h"

namespace kf::config::huggingface {
namespace {

/// Keys of older files that say how some program ran the model.
void ignore_run_keys(Reader& c) {
  c.ignore({"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
            "gradient_checkpointing", "classifier_dropout", "n_ctx", "rotary"});
  c.only("scale_attn_by_inverse_layer_idx", Node(false));
}

void bias_everything(Reader& c) {
  c.set("attn_bias", std::string("all"));
  c.set("mlp_bias", true);
}

/// The share of a head that rotates, such that the width is `rotated` to the component.
double share_of(std::int64_t rotated, std::int64_t head) {
  const double share = static_cast<double>(rotated) / static_cast<double>(head);
  return static_cast<std::int64_t>(share * static_cast<double>(head)) == rotated ? share : std::nextafter(share, 1.0);
}

/// GPT-2's keys for the shape. Returns head_dim.
std::int64_t take_gpt_shape(Reader& c, bool tied) {
  const std::int64_t dim = c.integer("n_embd");
  const std::int64_t heads = c.integer("n_head");
  c.set("dim", dim);
  c.set("n_layers", c.integer("n_layer"));
  c.set("n_heads", heads);
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("n_positions"));
  c.set("ffn_hidden_dim", c.integer("n_inner", 4 * dim));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", tied));
  take_layer_norm(c, "layer_norm_epsilon", 1e-5, true);
  take_dropout(c, "attn_pdrop", "dropout_attn");
  take_dropout(c, "embd_pdrop", "dropout_embed");
  take_dropout(c, "resid_pdrop", "dropout_resid");
  return head_width(dim, heads);
}

/// GPT-Neo's kinds of layers: attention_types [[["global", "local"], 12]] stands for 12 times both; attention_layers, which files may hold
/// besides, must say the same.
std::vector<std::string> spread_kinds(Reader& c, std::int64_t layers) {
  Array kinds;
  const Array* const types = c.list("attention_types");
  for (const Node& entry : types ? *types : Array()) {
    const Array* const pair = entry.array();
    const Array* const names = pair && pair->size() == 2 ? (*pair)[0].array() : nullptr;
    const auto* const times = names ? std::get_if<std::int64_t>(&(*pair)[1].value) : nullptr;
    if (times == nullptr || names->empty()) {
      c.problem(format("attention_types has {}, which is not understood", brief(entry)));
      return all_layers(layers, "global");
    }
    for (std::int64_t i = 0; i < *times && static_cast<std::int64_t>(kinds.size()) <= layers; ++i) {
      kinds.insert(kinds.end(), names->begin(), names->end());
    }
  }
  const Array* const each = c.list("attention_layers");
  if (each && types && *each != kinds) {
    c.problem("attention_layers and attention_types differ");
  }
  std::vector<std::string> out;
  for (const Node& kind : each && !types ? *each : kinds) {
    const auto* const name = std::get_if<std::string>(&kind.value);
    if (name == nullptr || (*name != "global" && *name != "local")) {
      c.problem(format("attention_layers has {}, which is not understood", brief(kind)));
      return all_layers(layers, "global");
    }
    out.push_back(*name);
  }
  if (static_cast<std::int64_t>(out.size()) != layers) {
    c.problem(format("attention_types names {} layers, num_layers is {}", out.size(), layers));
  }
  return out;
}

/// hidden_dropout drops both branches.
void take_hidden_dropout(Reader& c) {
  take_dropout(c, "hidden_dropout", "dropout_resid");
  take_dropout(c, "attention_dropout", "dropout_attn");
}

}  // namespace

/// One norm for both branches; rotary_dim components of a head rotate, neighbours together; the head has a bias.
void read_gptj(Reader& c) {
  const std::int64_t head = take_gpt_shape(c, false);
  take_activation(c, "activation_function", "gelu_new", false);
  c.set("norm_placement", std::string("parallel"));
  c.set("mlp_bias", true);
  c.set("head_bias", true);
  c.set("rope_layout", std::string("interleaved"));
  c.set("rope_theta", 10000.0);
  const std::int64_t rotated = c.integer("rotary_dim", 64);
  if (rotated != head) {
    c.set("rope_fraction", share_of(rotated, head));
  }
  c.only("scale_attn_weights", Node(true));
  ignore_run_keys(c);
}

/// GPT-J whose queries, values and keys lie in four shards.
void read_codegen(Reader& c) { read_gptj(c); }

/// Global and local layers by turns; scores without a scale, a bias behind the attention only.
void read_gpt_neo(Reader& c) {
  const std::int64_t dim = c.integer("hidden_size");
  const std::int64_t layers = c.integer("num_layers");
  c.set("dim", dim);
  c.set("n_layers", layers);
  c.set("n_heads", c.integer("num_heads"));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("max_position_embeddings"));
  c.set("ffn_hidden_dim", c.integer("intermediate_size", 4 * dim));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", true));
  take_layer_norm(c, "layer_norm_epsilon", 1e-5, true);
  take_activation(c, "activation_function", "gelu_new", false);
  c.set("attn_scale", 1.0);
  c.set("attn_bias", std::string("out"));
  c.set("mlp_bias", true);
  c.set("pos_embedding", std::string("learned"));
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_dropout(c, "embed_dropout", "dropout_embed");
  take_dropout(c, "resid_dropout", "dropout_resid");
  take_layer_types(c, spread_kinds(c, layers), c.integer("window_size", 256));
  ignore_run_keys(c);
}

/// q, k and v of a head lie together; use_parallel_residual gives each branch its norm of the same input.
void read_gpt_neox(Reader& c) {
  const Shape shape = take_shape(c, false);
  c.only("num_key_value_heads", Node(shape.heads));  // the class does not read it
  take_layer_norm(c, "layer_norm_eps", 1e-5, true);
  take_activation(c, "hidden_act", "gelu", false);
  c.set("mlp_bias", true);
  take_attention_bias(c, true, "all");
  c.set("norm_placement", std::string(c.flag("use_parallel_residual", true) ? "parallel2" : "pre"));
  take_hidden_dropout(c);
  const double fraction = c.real("rotary_pct", 0.25);
  RopeFamily rope{c.real("rotary_emb_base", 10000), fraction};
  rope.partial = true;
  take_rope(c, rope);
  ignore_run_keys(c);
}

/// One norm for both branches, part of each head rotates, biases everywhere.
void read_phi(Reader& c) {
  take_shape(c, false);
  take_layer_norm(c, "layer_norm_eps", 1e-5, true);
  take_activation(c, "hidden_act", "gelu_new", false);
  bias_everything(c);
  c.set("head_bias", true);
  c.set("norm_placement", std::string("parallel"));
  if (c.flag("qk_layernorm", false)) {
    set_qk_layer_norm(c, "head", true);
  }
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_dropout(c, "resid_pdrop", "dropout_resid");
  take_dropout(c, "embd_pdrop", "dropout_embed");
  take_rope(c, {10000, 0.5});
}

/// One key and value head (7B), groups of them (40B, 180B) or one each (RW); the norms go with it.
void read_falcon(Reader& c) {
  const std::int64_t dim = c.integer("hidden_size");
  const std::int64_t heads = c.integer("num_attention_heads");
  c.set("dim", dim);
  c.set("n_layers", c.integer("num_hidden_layers"));
  c.set("n_heads", heads);
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("max_position_embeddings", 2048));
  c.set("ffn_hidden_dim", c.integer("ffn_hidden_size", 4 * dim));
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", true));
  take_layer_norm(c, "layer_norm_epsilon", 1e-5, true);
  take_activation(c, "activation", "gelu", false);
  if (c.flag("bias", false)) {
    bias_everything(c);
  }
  const bool grouped = c.flag("new_decoder_architecture", false);
  const bool one = c.flag("multi_query", true);
  const std::int64_t kv = c.integer("num_kv_heads", heads);
  c.set("n_kv_heads", grouped ? kv : one ? 1 : heads);
  const bool parallel = c.flag("parallel_attn", true);
  const std::int64_t norms = c.integer("num_ln_in_parallel_attn", grouped ? 2 : 1);
  if (norms != 1 && norms != 2) {
    c.problem(format("num_ln_in_parallel_attn = {} is not understood; 1 and 2 are", norms));
  }
  if (grouped && !parallel) {
    c.problem("new_decoder_architecture = true without parallel_attn is not understood");
  }
  c.set("norm_placement", std::string(!parallel ? "pre" : grouped && norms == 2 ? "parallel2" : "parallel"));
  c.only("apply_residual_connection_post_layernorm", Node(false));
  if (c.real("hidden_dropout", 0) != 0) {
    c.problem("hidden_dropout above 0 is not understood for falcon, which drops the sum of both branches");
  }
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_rope(c, {});
  if (c.flag("alibi", false)) {  // distances, scaled as the scores are, in place of the rotation
    c.set("pos_embedding", std::string("alibi"));
    c.set("alibi_scale", 1 / std::sqrt(static_cast<double>(head_width(dim, heads))));
  }
}

/// Distances instead of positions, a norm behind the embedding.
void read_bloom(Reader& c) {
  const std::int64_t dim = c.integer("hidden_size", c.integer("n_embed", 64));
  if (c.integer("n_embed", dim) != dim) {
    c.problem("hidden_size and n_embed differ");
  }
  c.set("dim", dim);
  c.set("n_layers", c.integer("n_layer", c.integer("num_hidden_layers", 2)));
  c.set("n_heads", c.integer("n_head", c.integer("num_attention_heads", 8)));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("seq_length", 2048));  // what it was trained on; distances go on
  c.set("ffn_hidden_dim", 4 * dim);
  c.set("init_std", c.real("initializer_range", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", true));
  take_layer_norm(c, "layer_norm_epsilon", 1e-5, true);
  c.set("activation", std::string("gelu_tanh"));
  bias_everything(c);
  c.set("embed_norm", true);
  c.set("pos_embedding", std::string("alibi"));
  take_hidden_dropout(c);
  c.only("apply_residual_connection_post_layernorm", Node(false));
  c.only("n_inner", Node());
  c.ignore({"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi", "skip_bias_add",
            "skip_bias_add_qkv", "slow_but_exact"});
}

/// Learned positions whose table has two rows more than there are positions.
void read_opt(Reader& c) {
  const std::int64_t dim = c.integer("hidden_size");
  c.set("dim", dim);
  c.set("n_layers", c.integer("num_hidden_layers"));
  c.set("n_heads", c.integer("num_attention_heads"));
  c.set("vocab_size", c.integer("vocab_size"));
  c.set("max_seq_len", c.integer("max_position_embeddings"));
  c.set("ffn_hidden_dim", c.integer("ffn_dim"));
  c.set("init_std", c.real("init_std", 0.02));
  c.set("tie_embeddings", c.flag("tie_word_embeddings", true));
  c.set("norm_type", std::string("layernorm"));
  c.set("norm_eps", 1e-5);
  if (!c.flag("layer_norm_elementwise_affine", true)) {
    c.set("norm_weight", false);
    c.set("norm_bias", false);
  }
  take_activation(c, "activation_function", "relu", false);
  if (c.flag("enable_bias", true)) {
    bias_everything(c);
  }
  c.set("pos_embedding", std::string("learned"));
  take_dropout(c, "attention_dropout", "dropout_attn");
  take_dropout(c, "dropout", "dropout_resid");
  c.only("do_layer_norm_before", Node(true));
  c.only("word_embed_proj_dim", Node(dim));
  c.only("_remove_final_layer_norm", Node(false));
  if (c.real("layerdrop", 0) != 0) {
    c.problem("layerdrop above 0 is not understood");
  }
  c.ignore({"prefix"});
}

/// GPT-2 with plain linear layers and, with multi_query, one key and value head.
void read_gpt_bigcode(Reader& c) {
  take_gpt_shape(c, true);
  take_activation(c, "activation_function", "gelu_pytorch_tanh", false);
  bias_everything(c);
  c.set("pos_embedding", std::string("learned"));
  const std::int64_t heads = c.integer("n_head");
  const std::int64_t kv = c.flag("multi_query", true) ? 1 : heads;
  c.set("n_kv_heads", kv);
  c.only("num_key_value_heads", Node(kv));
  c.only("scale_attn_weights", Node(true));
  c.ignore({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size", "max_sequence_length",
            "pad_key_length", "pre_allocate_kv_cache", "validate_runner_input"});
  ignore_run_keys(c);
}

}  // namespace kf::config::huggingface
