#include "config/derived.h"

#include <algorithm>
#include <cmath>

namespace kf::config {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

/// Widths from silly multipliers stay far inside int64; a rule refuses them (rules_model.cpp).
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::min(value, 1e15)); }

std::int64_t attention_weights(const ModelConfig& m) {
  const std::int64_t width = head_dim(m);
  return 2 * m.dim * m.n_heads * width + 2 * m.dim * kv_heads(m) * width;  // q and o, k and v
}

std::int64_t norm_weights(const ModelConfig& m) { return m.norm_type == "layernorm" ? 2 * m.dim : m.dim; }

/// Weights of matrices that one token visits in a layer, the router left out.
std::int64_t active_weights(const ModelConfig& m, std::int64_t layer) {
  if (!is_moe_layer(m, layer)) {
    return attention_weights(m) + mlp_matrices(m) * m.dim * ffn_hidden_dim(m);
  }
  return attention_weights(m) + (m.moe_top_k + m.moe_shared_experts) * mlp_matrices(m) * m.dim * expert_ffn_hidden_dim(m);
}

}  // namespace

std::int64_t kv_heads(const ModelConfig& model) { return model.n_kv_heads.value_or(model.n_heads); }

std::int64_t head_dim(const ModelConfig& model) { return model.dim / model.n_heads; }

std::int64_t ffn_hidden_dim(const ModelConfig& model) {
  if (model.ffn_hidden_dim) {
    return *model.ffn_hidden_dim;
  }
  // In this order, in double: the reference's presets depend on the rounding.
  const double raw = std::trunc(4.0 * real(model.dim) * (2.0 / 3.0) * model.ffn_dim_multiplier);
  return 256 * whole(std::ceil(raw / 256.0));
}

std::int64_t expert_ffn_hidden_dim(const ModelConfig& model) {
  const double raw = std::trunc(real(ffn_hidden_dim(model)) * model.moe_expert_ffn_multiplier);
  return std::max<std::int64_t>(16, 16 * whole(std::nearbyint(raw / 16.0)));  // half to even
}

bool is_moe(const ModelConfig& model) { return model.num_experts > 0; }

bool is_moe_layer(const ModelConfig& model, std::int64_t index) { return is_moe(model) && (index + 1) % model.moe_frequency == 0; }

std::string mlp_name(const std::string& activation) {
  if (activation == "silu") {
    return "swiglu";
  }
  return activation == "gelu" || activation == "relu" ? "standard_" + activation : activation;
}

std::int64_t mlp_matrices(const ModelConfig& model) { return mlp_name(model.activation).starts_with("standard_") ? 2 : 3; }

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
  const std::int64_t matrices = mlp_matrices(m) * m.dim;
  const std::int64_t expert = matrices * expert_ffn_hidden_dim(m);
  const std::int64_t bias = m.moe_router == "sigmoid_topk" ? m.num_experts : 0;
  const std::int64_t table = m.vocab_size * m.dim;
  std::vector<std::pair<std::string, std::int64_t>> parts = {
      {"embedding", table},
      {"norms", (2 * m.n_layers + 1) * norm_weights(m)},
      {"attention", m.n_layers * (attention_weights(m) + (m.qk_norm ? 2 * head_dim(m) : 0))},
      {"mlp", (m.n_layers - with_experts) * matrices * ffn_hidden_dim(m)},
      {"router", with_experts * (m.dim * m.num_experts + bias)},
      {"shared_expert", with_experts * m.moe_shared_experts * expert},
      {"experts", with_experts * m.num_experts * expert},
      {"head", m.tie_embeddings ? 0 : table},
  };
  std::erase_if(parts, [](const auto& part) { return part.second == 0; });
  return parts;
}

double flops_per_token(const ModelConfig& model, std::int64_t seq_len) {
  std::int64_t weights = model.vocab_size * model.dim;  // the head; looking up an embedding costs nothing
  for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
    weights += active_weights(model, layer);
  }
  return 6.0 * real(weights) + 12.0 * real(model.n_layers) * real(model.dim) * real(seq_len);
}

std::int64_t data_seed(const TrainConfig& train) { return train.data_seed.value_or(train.seed); }

}  // namespace kf::config
