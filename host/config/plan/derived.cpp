#include "config/plan/derived.h"

#include <algorithm>
#include <cmath>

namespace kf::config {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

/// Widths from silly multipliers stay far inside int64; a rule refuses them (rules_model.cpp).
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::min(value, 1e15)); }

/// Matrices of the attention of a layer.
std::int64_t attention_weights(const ModelConfig& m, std::int64_t layer) {
  if (m.attention == "mla") {
    const std::int64_t query = m.n_heads * (m.mla_nope_dim + m.mla_rope_dim);
    const std::int64_t q = m.mla_q_rank == 0 ? m.dim * query : m.mla_q_rank * (m.dim + query);
    const std::int64_t kv = m.dim * (m.mla_kv_rank + m.mla_rope_dim) + m.mla_kv_rank * m.n_heads * (m.mla_nope_dim + m.mla_v_dim);
    return q + kv + m.n_heads * m.mla_v_dim * m.dim;
  }
  const std::int64_t width = head_dim(m, layer);
  const std::int64_t kv = (keys_are_values(m, layer) ? 1 : 2) * m.dim * kv_heads(m, layer) * width;
  const std::int64_t gate = m.attn_gate == "element" ? m.n_heads * width : m.attn_gate == "head" ? m.n_heads : 0;
  return (m.dim + branch_dim(m)) * m.n_heads * width + kv + m.dim * gate;  // q and o, k and v
}

/// Biases, norms and sinks inside the attention of a layer.
std::int64_t attention_vectors(const ModelConfig& m, std::int64_t layer) {
  const bool in = has_input_bias(m);
  const std::int64_t out = (has_output_bias(m) ? branch_dim(m) : 0) + (m.attn_sink ? m.n_heads : 0);
  if (m.attention == "mla") {
    const std::int64_t biases = in ? m.mla_q_rank + m.mla_kv_rank + m.mla_rope_dim : 0;
    return out + biases + (m.norm_weight ? m.mla_q_rank + m.mla_kv_rank : 0);
  }
  const std::int64_t width = head_dim(m, layer);
  const std::int64_t heads = m.n_heads + kv_heads(m, layer);  // of queries and keys
  const std::int64_t biases = in ? (heads + (keys_are_values(m, layer) ? 0 : kv_heads(m, layer))) * width : 0;
  const std::int64_t normed = m.qk_norm_kind == "l2" ? 0 : m.qk_norm_kind == "head" ? 2 : heads;
  const std::int64_t each = (m.norm_weight ? 1 : 0) + (m.qk_norm_type == "layernorm" && m.qk_norm_bias ? 1 : 0);
  const std::int64_t values = m.v_norm == "scaled" && m.norm_weight ? width : 0;
  return out + biases + (m.qk_norm ? normed * each * width : 0) + values;
}

/// Of a norm `dim` wide.
std::int64_t norm_weights(const ModelConfig& m, std::int64_t dim) {
  return (m.norm_weight ? dim : 0) + (m.norm_type == "layernorm" && m.norm_bias ? dim : 0);
}

std::int64_t norms_in_block(const ModelConfig& m) { return m.norm_placement == "sandwich" ? 4 : m.norm_placement == "parallel" ? 1 : 2; }

/// Of a feed-forward layer from `dim` over `hidden` to `dim`, biases included.
std::int64_t mlp_weights(const ModelConfig& m, std::int64_t dim, std::int64_t hidden) {
  const std::int64_t biases = m.mlp_bias ? (mlp_matrices(m) - 1) * hidden + dim : 0;
  return mlp_matrices(m) * dim * hidden + biases + (m.activation == "xielu" ? 2 : 0);
}

/// The norms of a block, its learned number, and the way back from attn_out_dim.
std::int64_t block_vectors(const ModelConfig& m) {
  const std::int64_t narrow = m.attn_out_dim > 0 ? norm_weights(m, m.attn_out_dim) - norm_weights(m, m.dim) : 0;
  return norms_in_block(m) * norm_weights(m, m.dim) + narrow + (m.layer_scalar ? 1 : 0);
}
std::int64_t way_back(const ModelConfig& m) { return m.attn_out_dim > 0 ? m.attn_out_dim * m.dim : 0; }

/// The projections around routed experts.
std::int64_t around_experts(const ModelConfig& m) { return expert_dim(m) != branch_dim(m) ? 2 * expert_dim(m) * branch_dim(m) : 0; }

/// Weights of matrices that one token visits in a layer, the router left out.
std::int64_t active_weights(const ModelConfig& m, std::int64_t layer) {
  const std::int64_t dim = branch_dim(m);
  const std::int64_t dense = mlp_matrices(m) * dim * ffn_hidden_dim(m);
  const std::int64_t attention = attention_weights(m, layer) + way_back(m);
  if (!is_moe_layer(m, layer)) {
    return attention + dense;
  }
  return attention + around_experts(m) + (m.moe_beside_dense ? dense : 0) +
         mlp_matrices(m) * (expert_dim(m) * m.moe_top_k * expert_ffn_hidden_dim(m) + dim * m.moe_shared_experts * shared_ffn_hidden_dim(m));
}

/// Gate, its bias, the selection bias, and the scales of softmax_normed.
std::int64_t router_weights(const ModelConfig& m) {
  const std::int64_t dim = branch_dim(m);
  const std::int64_t scales = m.moe_router == "softmax_normed" ? dim + m.num_experts : 0;
  return scales + m.num_experts * (dim + (m.moe_router_bias ? 1 : 0) + (moe_bias_rule(m) == "none" ? 0 : 1));
}

std::int64_t shared_weights(const ModelConfig& m) {
  return m.moe_shared_experts * mlp_weights(m, branch_dim(m), shared_ffn_hidden_dim(m)) + (m.moe_shared_gate ? branch_dim(m) : 0);
}

std::int64_t routed_weights(const ModelConfig& m) {
  return m.num_experts * mlp_weights(m, expert_dim(m), expert_ffn_hidden_dim(m)) + around_experts(m);
}

/// Of a dense layer, or of the one beside experts.
std::int64_t dense_weights(const ModelConfig& m) { return mlp_weights(m, branch_dim(m), ffn_hidden_dim(m)); }

/// Of one layer of model.mtp_layers: two norms, their product, and a block like the last one.
std::int64_t mtp_weights(const ModelConfig& m) {
  const std::int64_t last = m.n_layers - 1;
  const bool experts = is_moe_layer(m, last);
  const std::int64_t beside = m.moe_beside_dense ? dense_weights(m) + 3 * norm_weights(m, m.dim) : 0;
  return 2 * norm_weights(m, m.dim) + block_vectors(m) + way_back(m) + 2 * m.dim * m.dim + attention_weights(m, last) +
         attention_vectors(m, last) + (experts ? router_weights(m) + shared_weights(m) + routed_weights(m) + beside : dense_weights(m));
}

/// Components of q k^T and of weights times v, over all heads of a layer.
std::int64_t score_width(const ModelConfig& m, std::int64_t layer) {
  return m.n_heads * (m.attention == "mla" ? m.mla_nope_dim + m.mla_rope_dim + m.mla_v_dim : 2 * head_dim(m, layer));
}

/// Keys that the last query of a sequence sees in a layer.
std::int64_t keys_seen(const ModelConfig& m, std::int64_t layer, std::int64_t seq_len) {
  const std::string& kind = layer_kind(m, layer);
  return kind == "local" ? std::min(seq_len, m.window) : kind == "chunk" ? std::min(seq_len, m.chunk) : seq_len;
}

}  // namespace

const std::string& source_name(const DatasetSource& source) {
  for (const std::string* const name : {&source.name, &source.dataset, &source.path}) {
    if (!name->empty()) {
      return *name;
    }
  }
  return source.hf_name;
}

std::int64_t kv_heads(const ModelConfig& model) { return model.n_kv_heads.value_or(model.n_heads); }

std::int64_t head_dim(const ModelConfig& model) { return model.head_dim.value_or(model.dim / model.n_heads); }

std::int64_t kv_heads(const ModelConfig& model, std::int64_t index) {
  return layer_kind(model, index) == "global" ? model.global_kv_heads.value_or(kv_heads(model)) : kv_heads(model);
}

std::int64_t head_dim(const ModelConfig& model, std::int64_t index) {
  return layer_kind(model, index) == "global" ? model.global_head_dim.value_or(head_dim(model)) : head_dim(model);
}

bool keys_are_values(const ModelConfig& model, std::int64_t index) { return model.global_k_is_v && layer_kind(model, index) == "global"; }

double rope_fraction(const ModelConfig& model, std::int64_t index) {
  return layer_kind(model, index) == "local" ? model.rope_fraction_local.value_or(model.rope_fraction) : model.rope_fraction;
}

std::int64_t branch_dim(const ModelConfig& model) { return model.attn_out_dim > 0 ? model.attn_out_dim : model.dim; }

std::int64_t expert_dim(const ModelConfig& model) { return model.moe_input_dim > 0 ? model.moe_input_dim : branch_dim(model); }

const std::string& layer_kind(const ModelConfig& model, std::int64_t index) {
  static const std::string global = "global";
  const Strings& pattern = model.layer_pattern;
  return index < model.window_from_layer || pattern.empty() ? global : pattern[static_cast<std::size_t>(index) % pattern.size()];
}

bool has_rope(const ModelConfig& model, std::int64_t index) {
  const Strings& pattern = model.rope_pattern;
  const bool rotates = pattern.empty() ? model.nope_every == 0 || (index + 1) % model.nope_every != 0
                                       : pattern[static_cast<std::size_t>(index) % pattern.size()] == "rope";
  return model.pos_embedding == "rope" && rotates;
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
  const Strings& pattern = model.moe_pattern;
  const bool experts = pattern.empty() ? index >= model.moe_first_dense && (index + 1) % model.moe_frequency == 0
                                       : pattern[static_cast<std::size_t>(index) % pattern.size()] == "experts";
  return is_moe(model) && experts;
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

bool takes_init_as_it_is(const CheckpointConfig& c) {
  const CheckpointConfig usual;
  return c.init_vocab == usual.init_vocab && c.init_weights == usual.init_weights && c.init_head == usual.init_head &&
         c.init_layers == usual.init_layers && c.strict && c.exclude_from_loading.empty() && c.name_map.empty();
}

bool saves_frozen(const Config& config) {
  const CheckpointConfig& c = config.checkpoint;
  return c.save_frozen.value_or(config.adapter.name.empty() || !c.init_from || !takes_init_as_it_is(c) || config.distributed.pp > 1);
}

std::int64_t parameter_count(const ModelConfig& model) {
  std::int64_t total = 0;
  for (const auto& [part, count] : parameter_parts(model)) {
    total += count;
  }
  return total;
}

std::vector<std::pair<std::string, std::int64_t>> parameter_parts(const ModelConfig& m) {
  std::int64_t with_experts = 0, attention = 0;
  for (std::int64_t layer = 0; layer < m.n_layers; ++layer) {
    with_experts += is_moe_layer(m, layer) ? 1 : 0;
    attention += attention_weights(m, layer) + attention_vectors(m, layer);
  }
  const std::int64_t table = m.vocab_size * m.dim;
  const std::int64_t beside = m.moe_beside_dense ? with_experts : 0;  // dense layers beside experts, with three norms
  std::vector<std::pair<std::string, std::int64_t>> parts = {
      {"embedding", table},
      {"positions", m.pos_embedding == "learned" ? m.max_seq_len * m.dim : 0},
      {"norms", m.n_layers * block_vectors(m) + (1 + (m.embed_norm ? 1 : 0) + 3 * beside) * norm_weights(m, m.dim)},
      {"attention", attention},
      {"mlp", (m.n_layers - with_experts + beside) * dense_weights(m) + m.n_layers * way_back(m)},
      {"router", with_experts * router_weights(m)},
      {"shared_expert", with_experts * shared_weights(m)},
      {"experts", with_experts * routed_weights(m)},
      {"mtp", m.mtp_layers * mtp_weights(m)},
      {"head", (m.tie_embeddings ? 0 : table) + (m.head_bias ? m.vocab_size : 0)},
  };
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

double layer_flops(const ModelConfig& model, std::int64_t index, std::int64_t seq_len) {
  return 6.0 * real(active_weights(model, index)) + 6.0 * real(score_width(model, index)) * real(keys_seen(model, index, seq_len));
}

double head_flops(const ModelConfig& model, std::int64_t seq_len) {
  const double product = 6.0 * real(model.vocab_size * model.dim);
  // Each look ahead: a block like the last one, the product before it, and the head once more.
  const double ahead = layer_flops(model, model.n_layers - 1, seq_len) + 12.0 * real(model.dim * model.dim) + product;
  return product + real(model.mtp_layers) * ahead;
}

double flops_per_token(const ModelConfig& model, std::int64_t seq_len) {
  double flops = head_flops(model, seq_len);  // looking up an embedding costs nothing
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
    flops += layer_flops(model, layer, seq_len);
  }
  return flops;
}

std::int64_t data_seed(const TrainConfig& train) { return train.data_seed.value_or(train.seed); }

}  // namespace kf::config
