#include "config/export/spellings.h"

#include <algorithm>
#include <cmath>

#include "config/plan/derived.h"

namespace kf::config {
namespace {

/// One value under each of the names.
class Proposals {
 public:
  template <class T>
  void add(std::initializer_list<const char*> keys, T value) {
    for (const char* key : keys) {
      out_.push_back({{key, Node(value)}});
    }
  }
  void add(Spelling together) { out_.push_back(std::move(together)); }
  void switches(std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      out_.push_back({{key, Node(true)}});
      out_.push_back({{key, Node(false)}});
    }
  }
  /// A number that 0 turns off, which files say as null.
  void number_or_null(std::initializer_list<const char*> keys, double value) {
    for (const char* key : keys) {
      out_.push_back({{key, value == 0 ? Node() : Node(value)}});
    }
  }
  std::vector<Spelling> take() { return std::move(out_); }

 private:
  std::vector<Spelling> out_;
};

void add_shape(Proposals& out, const ModelConfig& m) {
  // Together: each alone may make heads of a wrong width.
  for (const auto& [dim, heads] :
       {std::pair("hidden_size", "num_attention_heads"), std::pair("n_embd", "n_head"), std::pair("d_model", "n_heads"),
        std::pair("hidden_size", "n_head"), std::pair("hidden_size", "num_heads")}) {
    out.add(Spelling{{dim, Node(m.dim)}, {heads, Node(m.n_heads)}});
  }
  out.add({"hidden_size", "n_embd", "d_model", "n_embed"}, m.dim);
  out.add({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, m.n_layers);
  out.add({"num_attention_heads", "n_head", "n_heads", "num_heads"}, m.n_heads);
  out.add({"vocab_size"}, m.vocab_size);
  const std::int64_t kv = kv_heads(m);
  out.switches({"multi_query"});
  for (const bool parallel : {true, false}) {
    out.add(Spelling{{"new_decoder_architecture", Node(false)}, {"multi_query", Node(kv == 1)}, {"parallel_attn", Node(parallel)}});
  }
  out.add({"num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads"}, kv);
  out.add(Spelling{{"new_decoder_architecture", Node(true)}, {"num_kv_heads", Node(kv)}});
  const std::int64_t width = ffn_hidden_dim(m);
  out.add({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "intermediate_size_mlp", "ffn_config.ffn_hidden_size"}, width);
  const char* const positions[] = {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"};
  for (const char* key : positions) {
    out.add({key}, m.max_seq_len);
    if (m.rope_scaling == "dynamic") {  // such files say the length before the stretch
      out.add({key}, m.rope_orig_len);
    }
  }
  out.switches({"tie_word_embeddings"});
  out.add({"head_dim", "attention_head_dim"}, m.attention == "mla" ? m.mla_rope_dim : head_dim(m));
}

void add_latent(Proposals& out, const ModelConfig& m) {
  if (m.attention != "mla") {
    return;
  }
  out.add({"qk_rope_head_dim"}, m.mla_rope_dim);
  out.add(Spelling{{"qk_rope_head_dim", Node(m.mla_rope_dim)}, {"head_dim", Node(m.mla_rope_dim)}});
  out.add({"qk_nope_head_dim"}, m.mla_nope_dim);
  out.add({"v_head_dim"}, m.mla_v_dim);
  out.add({"kv_lora_rank"}, m.mla_kv_rank);
  out.add(Spelling{{"q_lora_rank", m.mla_q_rank == 0 ? Node() : Node(m.mla_q_rank)}});
  out.switches({"rope_interleave"});
}

void add_global_heads(Proposals& out, const ModelConfig& m) {
  out.switches({"attention_k_eq_v"});
  out.add({"hidden_size_per_layer_input"}, std::int64_t{0});
  out.add({"global_head_dim"}, m.global_head_dim.value_or(head_dim(m)));
  out.add({"num_global_key_value_heads"}, m.global_kv_heads.value_or(kv_heads(m)));
}

void add_activation(Proposals& out, const ModelConfig& m) {
  const std::string name = m.activation == "gelu_tanh" ? "gelu_pytorch_tanh" : m.activation;
  out.add({"hidden_act", "activation_function", "hidden_activation", "activation"}, name);
  out.add({"swiglu_limit"}, m.mlp_act_limit);
}

void add_norms(Proposals& out, const ModelConfig& m) {
  out.add({"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"}, m.norm_eps);
  out.switches({"use_qk_norm", "qk_layernorm", "use_post_norm", "use_parallel_residual", "parallel_attn", "layer_norm_elementwise_affine"});
  for (const std::int64_t norms : {1, 2}) {
    out.add({"num_ln_in_parallel_attn"}, norms);
  }
}

void add_biases(Proposals& out) {
  out.switches({"attention_bias", "qkv_bias", "use_qkv_bias", "mlp_bias", "use_bias", "bias", "enable_bias", "attention_out_bias"});
  for (const bool on : {true, false}) {  // those that classes have in common
    out.add(Spelling{{"attention_bias", Node(on)}, {"mlp_bias", Node(on)}});
    out.add(Spelling{{"attention_bias", Node(on)}, {"attention_out_bias", Node(on)}});
  }
  out.switches({"new_decoder_architecture", "alibi"});
}

void add_factors(Proposals& out, const ModelConfig& m) {
  const double layers = static_cast<double>(m.n_layers), dim = static_cast<double>(m.dim);
  out.add({"embedding_multiplier", "scale_emb"}, m.embed_scale == 0 ? std::sqrt(dim) : m.embed_scale);
  out.switches({"mup_enabled"});
  out.add({"residual_multiplier"}, m.residual_scale);
  out.add({"scale_depth"}, m.residual_scale * std::sqrt(layers));
  const double scale = m.attn_scale == 0 ? 1 / std::sqrt(static_cast<double>(head_dim(m))) : m.attn_scale;
  out.add({"attention_multiplier", "attn_config.softmax_scale"}, scale);
  const double squared = 1 / (scale * scale);
  const bool whole = std::abs(squared - std::round(squared)) < 1e-9 * squared;
  out.add(Spelling{{"query_pre_attn_scalar", whole ? Node(static_cast<std::int64_t>(std::llround(squared))) : Node(squared)}});
  out.switches({"scale_attn_weights", "scale_attn_by_inverse_layer_idx"});
  out.add({"logit_scale", "logits_scaling"}, m.logit_scale);
  out.add({"logits_scaling"}, 1 / m.logit_scale);
  out.add({"dim_model_base"}, static_cast<std::int64_t>(std::llround(m.logit_scale * dim)));
  out.number_or_null({"final_logit_softcapping"}, m.final_logit_softcap);
  out.number_or_null({"attn_logit_softcapping"}, m.attn_softcap);
  out.number_or_null({"clip_qkv", "attn_config.clip_qkv"}, m.attn_qkv_clip);
  if (m.attn_temp_tuning) {
    out.add({"attn_scale"}, m.attn_temp_scale);
    out.add({"floor_scale"}, m.attn_temp_floor);
  }
  out.switches({"attn_temperature_tuning"});
}

void add_experts(Proposals& out, const ModelConfig& m) {
  if (!is_moe(m)) {
    return;
  }
  const std::int64_t width = expert_ffn_hidden_dim(m), shared = m.moe_shared_experts * shared_ffn_hidden_dim(m);
  out.switches({"enable_moe_block"});
  out.add({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "ffn_config.moe_num_experts"}, m.num_experts);
  out.add({"num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk", "moe_k", "ffn_config.moe_top_k"}, m.moe_top_k);
  out.add({"moe_intermediate_size", "intermediate_size"}, width);
  if (m.moe_beside_dense) {
    out.add(Spelling{{"enable_moe_block", Node(true)},
                     {"num_experts", Node(m.num_experts)},
                     {"top_k_experts", Node(m.moe_top_k)},
                     {"moe_intermediate_size", Node(width)}});
  }
  out.add({"shared_expert_intermediate_size", "shared_intermediate_size"}, shared);
  if (width > 0 && shared % width == 0) {
    out.add({"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"}, shared / width);
  }
  out.switches({"norm_topk_prob"});
  out.add(Spelling{{"ffn_config.moe_normalize_expert_weights", Node()}});
  out.add({"routed_scaling_factor", "route_scale", "router_scaling_factor"}, m.moe_routed_scale);
  const std::int64_t groups = std::max<std::int64_t>(m.moe_groups, 1), kept = std::max<std::int64_t>(m.moe_topk_groups, 1);
  out.add(Spelling{{"n_group", Node(groups)}, {"topk_group", Node(kept)}});
  for (const char* method : {"greedy", "group_limited_greedy"}) {
    out.add(Spelling{{"topk_method", Node(std::string(method))}, {"n_group", Node(groups)}, {"topk_group", Node(kept)}});
  }
}

void add_training(Proposals& out, const ModelConfig& m) {
  out.add({"initializer_range", "init_std"}, m.init_std);
  out.add({"embedding_initializer_range"}, m.embed_init_std.value_or(m.init_std));
  out.add({"attention_dropout", "attn_pdrop", "attn_config.attn_pdrop"}, m.dropout_attn);
  out.add({"resid_pdrop", "residual_dropout", "resid_dropout", "hidden_dropout", "dropout"}, m.dropout_resid);
  out.add({"embd_pdrop", "embedding_dropout", "embed_dropout"}, m.dropout_embed);
  out.add({"router_aux_loss_coef", "ffn_config.moe_loss_weight"}, m.moe_aux_loss_weight);
  out.add(Spelling{{"pad_token_id", m.pad_id ? Node(*m.pad_id) : Node()}});
}

}  // namespace

std::vector<Spelling> spellings(const ModelConfig& model) {
  Proposals out;
  add_shape(out, model);
  add_latent(out, model);
  add_global_heads(out, model);
  add_activation(out, model);
  add_norms(out, model);
  add_biases(out);
  add_factors(out, model);
  add_experts(out, model);
  add_training(out, model);
  std::vector<Spelling> all = out.take();
  for (const auto& more : {layer_spellings(model), rope_spellings(model)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Table with(Table json, const Spelling& spelling) {
  for (const auto& [path, value] : spelling) {
    Table* table = &json;
    std::string key = path;
    if (const std::size_t point = path.find('.'); point != std::string::npos) {
      Node& inner = json[path.substr(0, point)];
      if (inner.table() == nullptr) {
        inner = Node(Table());
      }
      table = inner.table();
      key = path.substr(point + 1);
    }
    if (value) {
      (*table)[key] = *value;
    } else {
      table->erase(key);
    }
  }
  return json;
}

}  // namespace kf::config
