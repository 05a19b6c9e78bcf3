#include "config/derived.h"

#include <algorithm>
#include <cmath>

namespace kf::config {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

/// Widths from silly multipliers stay far inside int64; a rule refuses them (rules_model.cpp).
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::min(value, 1e15)); }

/// Matrices of an attention layer.
std::int64_t attention_weights(const ModelConfig& m) {
  if (m.attention == "mla") {
    const std::int64_t query = m.n_heads * (m.mla_nope_dim + m.mla_rope_dim);
    const std::int64_t q = m.mla_q_rank == 0 ? m.dim * query : m.mla_q_rank * (m.dim + query);
    const std::int64_t kv = m.dim * (m.mla_kv_rank + m.mla_rope_dim) + m.mla_kv_rank * m.n_heads * (m.mla_nope_dim + m.mla_v_dim);
    return q + kv + m.n_heads * m.mla_v_dim * m.dim;
  }
  const std::int64_t width = head_dim(m);
  return 2 * m.dim * m.n_heads * width + 2 * m.dim * kv_heads(m) * width;  // q and o, k and v
}

/// Biases, norms and sinks inside an attention layer.
std::int64_t attention_vectors(const ModelConfig& m) {
  const bool in = has_input_bias(m);
  const std::int64_t out = (has_output_bias(m) ? m.dim : 0) + (m.attn_sink ? m.n_heads : 0);
  if (m.attention == "mla") {
    const std::int64_t biases = in ? m.mla_q_rank + m.mla_kv_rank + m.mla_rope_dim : 0;
    return out + biases + (m.norm_weight ? m.mla_q_rank + m.mla_kv_rank : 0);
  }
  const std::int64_t heads = m.n_heads + kv_heads(m);  // of queries and keys
  const std::int64_t biases = in ? (heads + kv_heads(m)) * head_dim(m) : 0;
  const std::int64_t normed = m.qk_norm_kind == "l2" ? 0 : m.qk_norm_kind == "head" ? 2 : heads;
  const std::int64_t each = (m.norm_weight ? 1 : 0) + (m.qk_norm_type == "layernorm" && m.qk_norm_bias ? 1 : 0);
  return out + biases + (m.qk_norm ? normed * each * head_dim(m) : 0);
}

std::int64_t norm_weights(const ModelConfig& m) {
  return (m.norm_weight ? m.dim : 0) + (m.norm_type == "layernorm" && m.norm_bias ? m.dim : 0);
}

std::int64_t norms_in_block(const ModelConfig& m) { return m.norm_placement == "sandwich" ? 4 : m.norm_placement == "parallel" ? 1 : 2; }

/// Biases of a feed-forward layer `hidden` wide.
std::int64_t mlp_biases(const ModelConfig& m, std::int64_t hidden) { return m.mlp_bias ? (mlp_matrices(m) - 1) * hidden + m.dim : 0; }

/// Weights of matrices that one token visits in a layer, the router left out.
std::int64_t active_weights(const ModelConfig& m, std::int64_t layer) {
  if (!is_moe_layer(m, layer)) {
    return attention_weights(m) + mlp_matrices(m) * m.dim * ffn_hidden_dim(m);
  }
  return attention_weights(m) +
         mlp_matrices(m) * m.dim * (m.moe_top_k * expert_ffn_hidden_dim(m) + m.moe_shared_experts * shared_ffn_hidden_dim(m));
}

/// Of a feed-forward layer of width `hidden`, biases included.
std::int64_t mlp_weights(const ModelConfig& m, std::int64_t hidden) {
  return mlp_matrices(m) * m.dim * hidden + mlp_biases(m, hidden) + (m.activation == "xielu" ? 2 : 0);
}

/// Gate, its bias, and the selection bias.
std::int64_t router_weights(const ModelConfig& m) {
  return m.num_experts * (m.dim + (m.moe_router_bias ? 1 : 0) + (moe_bias_rule(m) == "none" ? 0 : 1));
}

std::int64_t shared_weights(const ModelConfig& m) {
  return m.moe_shared_experts * mlp_weights(m, shared_ffn_hidden_dim(m)) + (m.moe_shared_gate ? m.dim : 0);
}

/// Of one layer of model.mtp_layers: two norms, their product, and a block like the last one.
std::int64_t mtp_weights(const ModelConfig& m) {
  const std::int64_t experts = router_weights(m) + shared_weights(m) + m.num_experts * mlp_weights(m, expert_ffn_hidden_dim(m));
  return (2 + norms_in_block(m)) * norm_weights(m) + 2 * m.dim * m.dim + attention_weights(m) + attention_vectors(m) +
         (is_moe_layer(m, m.n_layers - 1) ? experts : mlp_weights(m, ffn_hidden_dim(m)));
}

/// Components of q k^T and of weights times v, over all heads.
std::int64_t score_width(const ModelConfig& m) {
  return m.n_heads * (m.attention == "mla" ? m.mla_nope_dim + m.mla_rope_dim + m.mla_v_dim : 2 * head_dim(m));
}

/// Keys that the last query of a sequence sees in a layer.
std::int64_t keys_seen(const ModelConfig& m, std::int64_t layer, std::int64_t seq_len) {
  const std::string& kind = layer_kind(m, layer);
  return kind == "local" ? std::min(seq_len, m.window) : kind == "chunk" ? std::min(seq_len, m.chunk) : seq_len;
}

}  // namespace

std::int64_t kv_heads(const ModelConfig& model) { return model.n_kv_heads.value_or(model.n_heads); }

std::int64_t head_dim(const ModelConfig& model) { return model.head_dim.value_or(model.dim / model.n_heads); }

const std::string& layer_kind(const ModelConfig& model, std::int64_t index) {
  static const std::string global = "global";
  const Strings& pattern = model.layer_pattern;
  return index < model.window_from_layer || pattern.empty() ? global : pattern[static_cast<std::size_t>(index) % pattern.size()];
}

bool has_rope(const ModelConfig& model, std::int64_t index) {
  return model.pos_embedding == "rope" && (model.nope_every == 0 || (index + 1) % model.nope_every != 0);
}

bool mlp_gated(const ModelConfig& model) {
  return model.mlp_gated.value_or(model.activation == "silu" || model.activation == "swiglu_oai");
}

std::int64_t ffn_hidden_dim(const ModelConfig& model) {
  if (model.ffn_hidden_dim) {
    return *model.ffn_hidden_dim;
  }
  // In this order, in double: the reference's presets depend on the rounding.
  const double raw = std::trunc(4.0 * real(model.dim) * (2.0 / 3.0) * model.ffn_dim_multiplier);
  return 256 * whole(std::ceil(raw / 256.0));
}

std::int64_t expert_ffn_hidden_dim(const ModelConfig& model) {
  if (model.moe_ffn_dim) {
    return *model.moe_ffn_dim;
  }
  const double raw = std::trunc(real(ffn_hidden_dim(model)) * model.moe_expert_ffn_multiplier);
  return std::max<std::int64_t>(16, 16 * whole(std::nearbyint(raw / 16.0)));  // half to even
}

std::int64_t shared_ffn_hidden_dim(const ModelConfig& model) { return model.moe_shared_ffn_dim.value_or(expert_ffn_hidden_dim(model)); }

bool is_moe(const ModelConfig& model) { return model.num_experts > 0; }

bool scores_by_sigmoid(const ModelConfig& model) {
  return model.moe_router == "sigmoid_topk" || model.moe_router == "sigmoid" || model.moe_router == "sqrtsoftplus";
}

bool is_moe_layer(const ModelConfig& model, std::int64_t index) {
  return is_moe(model) && index >= model.moe_first_dense && (index + 1) % model.moe_frequency == 0;
}

bool has_input_bias(const ModelConfig& model) { return model.attn_bias == "qkv" || model.attn_bias == "all"; }
bool has_output_bias(const ModelConfig& model) { return model.attn_bias == "out" || model.attn_bias == "all"; }

std::string moe_bias_rule(const ModelConfig& model) {
  return model.moe_bias_rule != "auto" ? model.moe_bias_rule : model.moe_router == "sigmoid_topk" ? "ema" : "none";
}

std::string mlp_name(const std::string& activation) {
  if (activation == "silu") {
    return "swiglu";
  }
  return activation == "gelu" || activation == "relu" ? "standard_" + activation : activation;
}

std::int64_t mlp_matrices(const ModelConfig& model) { return mlp_gated(model) ? 3 : 2; }

std::int64_t parameter_count(const ModelConfig& model) {
  std::int64_t total = 0;
  for (const auto& [part, count] : parameter_parts(model)) {
    total += count;
  }
  return total;
}

std::vector<std::pair<std::string, std::int64_t>> parameter_parts(const ModelConfig& m) {
  std::int64_t with_experts = 0;
  for (std::int64_t layer = 0; layer < m.n_layers; ++layer) {
    with_experts += is_moe_layer(m, layer) ? 1 : 0;
  }
  const std::int64_t table = m.vocab_size * m.dim;
  std::vector<std::pair<std::string, std::int64_t>> parts = {
      {"embedding", table},
      {"positions", m.pos_embedding == "learned" ? m.max_seq_len * m.dim : 0},
      {"norms", (norms_in_block(m) * m.n_layers + 1 + (m.embed_norm ? 1 : 0)) * norm_weights(m)},
      {"attention", m.n_layers * (attention_weights(m) + attention_vectors(m))},
      {"mlp", (m.n_layers - with_experts) * mlp_weights(m, ffn_hidden_dim(m))},
      {"router", with_experts * router_weights(m)},
      {"shared_expert", with_experts * shared_weights(m)},
      {"experts", with_experts * m.num_experts * mlp_weights(m, expert_ffn_hidden_dim(m))},
      {"mtp", m.mtp_layers * mtp_weights(m)},
      {"head", (m.tie_embeddings ? 0 : table) + (m.head_bias ? m.vocab_size : 0)},
  };
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

double flops_per_token(const ModelConfig& model, std::int64_t seq_len) {
  std::int64_t weights = model.vocab_size * model.dim;  // the head; looking up an embedding costs nothing
  double scores = 0;
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
    weights += active_weights(model, layer);
    scores += 6.0 * real(score_width(model)) * real(keys_seen(model, layer, seq_len));
  }
  // Each look ahead: a block like the last one, the product before it, and the head once more.
  const std::int64_t last = model.n_layers - 1;
  weights += model.mtp_layers * (active_weights(model, last) + 2 * model.dim * model.dim + model.vocab_size * model.dim);
  scores += real(model.mtp_layers) * 6.0 * real(score_width(model)) * real(keys_seen(model, last, seq_len));
  return 6.0 * real(weights) + scores;
}

std::int64_t data_seed(const TrainConfig& train) { return train.data_seed.value_or(train.seed); }

}  // namespace kf::config
