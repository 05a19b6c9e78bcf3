#include "plan/compute.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "config/plan/derived.h"
#include "config/plan/recomputation.h"

namespace kf::plan {
namespace {

constexpr double kTile = 128;
constexpr double kMemoryShare = 0.8;  // of the memory's bandwidth that passes over tensors reach: an assumption

double real(std::int64_t n) { return static_cast<double>(n); }

double round_up(double value, double unit) { return std::ceil(value / unit) * unit; }

}  // namespace

Seconds& Seconds::operator+=(const Seconds& other) {
  forward += other.forward;
  inputs += other.inputs;
  weights += other.weights;
  again += other.again;
  return *this;
}

double product_seconds(const Gpu& gpu, double peak, double m, double n, double k, double bytes_a_number) {
  if (m <= 0 || n <= 0 || k <= 0) {
    return 0;
  }
  const double tiles = std::ceil(m / kTile) * std::ceil(n / kTile);
  const double rounds = round_up(tiles, gpu.units);
  const double computing = 2 * rounds * kTile * kTile * k / (gpu.product_share * peak);
  const double moving = (m * k + k * n + m * n) * bytes_a_number / (kMemoryShare * gpu.memory_bandwidth);
  return std::max(computing, moving);
}

double peak_of(const Gpu& gpu, const config::TrainConfig& train) {
  if (train.mixed_precision == "fp8") {
    return gpu.fp8;
  }
  if (train.mixed_precision != "fp32") {
    return gpu.bf16;
  }
  return train.matmul_precision == "highest" ? gpu.fp32 : train.matmul_precision == "high" ? gpu.tf32 : gpu.bf16;
}

Compute::Compute(const config::Config& config, const Gpu& gpu, const Layout& layout)
    : config_(config),
      gpu_(gpu),
      tp_(real(layout.mesh.degree(Axis::tp))),
      cp_(real(layout.mesh.degree(Axis::cp))),
      ep_(real(layout.mesh.degree(Axis::ep))),
      peak_(peak_of(gpu, config.train)),
      width_(config.train.mixed_precision == "fp32" ? 4 : 2),
      tokens_(real(config.train.batch_size * config.train.seq_len) / cp_),
      stream_(tp_ > 1 && config.distributed.sequence_parallel ? tokens_ / tp_ : tokens_) {}

/// Whether recomputation finds the result of a product in memory.
bool Compute::kept(const char* result, std::int64_t layer) const { return config::keeps_result(config_.train, layer, result); }

Seconds Compute::product(double m, double n, double k, const char* result, std::int64_t layer) const {
  const auto seconds = [&](double rows, double columns, double depth) {
    return product_seconds(gpu_, peak_, rows, columns, depth, width_);
  };
  Seconds out;
  out.forward = seconds(m, n, k);
  out.inputs = seconds(m, k, n);
  out.weights = seconds(n, k, m);
  out.again = kept(result, layer) ? 0 : out.forward;
  return out;
}

Seconds Compute::passes(double bytes, bool again) const {
  const double forward = bytes / (kMemoryShare * gpu_.memory_bandwidth);
  return {forward, 2 * forward, 0, again ? forward : 0};
}

Seconds Compute::projections(std::int64_t layer) const {
  const config::ModelConfig& m = config_.model;
  const double dim = real(m.dim), heads = real(m.n_heads) / tp_;
  Seconds out;
  if (m.attention == "mla") {
    const double query = heads * real(m.mla_nope_dim + m.mla_rope_dim), rank = real(m.mla_q_rank);
    if (rank > 0) {
      out += product(tokens_, rank, dim, "q", layer);
    }
    out += product(tokens_, query, rank > 0 ? rank : dim, "q", layer);
    out += product(tokens_, real(m.mla_kv_rank + m.mla_rope_dim), dim, "kv", layer);
    // Each rank along cp makes the keys and values of all positions from the latent, which is what travels.
    out += product(tokens_ * cp_, heads * real(m.mla_nope_dim + m.mla_v_dim), real(m.mla_kv_rank), "kv", layer);
    out += product(tokens_, real(config::branch_dim(m)), heads * real(m.mla_v_dim), "out", layer);
    return out;
  }
  const double width = real(config::head_dim(m, layer));
  const double keys = std::max(real(config::kv_heads(m, layer)) / tp_, 1.0) * width;
  out += product(tokens_, heads * width, dim, "q", layer);
  out += product(tokens_, keys, dim, "k", layer);
  if (!config::keys_are_values(m, layer)) {
    out += product(tokens_, keys, dim, "v", layer);
  }
  out += product(tokens_, real(config::branch_dim(m)), heads * width, "out", layer);
  return out;
}

double Compute::attention_forward(std::int64_t index) const {
  const config::ModelConfig& m = config_.model;
  const double length = real(config_.train.seq_len);
  const std::string& kind = config::layer_kind(m, index);
  const double seen = kind == "local" ? std::min(length, real(m.window)) : kind == "chunk" ? std::min(length, real(m.chunk)) : length;
  // Causal: the mean over the queries of a sequence; a window is short at its start alone, a chunk begins anew.
  const double keys = kind == "chunk" ? seen / 2 : seen - seen * seen / (2 * length);
  const double widths = m.attention == "mla" ? real(m.mla_nope_dim + m.mla_rope_dim + m.mla_v_dim) : 2 * real(config::head_dim(m, index));
  return 2 * tokens_ * keys * real(m.n_heads) / tp_ * widths / (gpu_.attention_share * peak_);
}

/// Backward makes five products of the kind of which forward makes two (Dao 2023, "FlashAttention-2", section 3.1).
Seconds Compute::attention(std::int64_t layer) const {
  const double forward = attention_forward(layer);
  return {forward, 2.5 * forward, 0, kept("context", layer) ? 0 : forward};
}

Seconds Compute::feed_forward(std::int64_t layer) const {
  const config::ModelConfig& m = config_.model;
  const double dim = real(config::branch_dim(m));
  const double before = config::mlp_gated(m) ? 2 : 1;
  Seconds out;
  const auto dense = [&](double hidden) {
    for (double i = 0; i < before; ++i) {
      out += product(tokens_, hidden / tp_, dim, i == 0 ? "up" : "gate", layer);
    }
    out += product(tokens_, dim, hidden / tp_, "down", layer);
    out += passes(tokens_ * (before + 1) * hidden / tp_ * width_, config::recomputes(config_.train, layer));
  };
  const bool experts = config::is_moe_layer(m, layer);
  if (!experts || m.moe_beside_dense) {
    dense(real(config::ffn_hidden_dim(m)));
  }
  if (!experts) {
    return out;
  }
  if (m.moe_shared_experts > 0) {
    dense(real(m.moe_shared_experts * config::shared_ffn_hidden_dim(m)));
  }
  // A rank has E / ep experts, 1 / tp of the inside of each, and for them the tokens that all ranks along ep send: as many as its own, if
  // they are even. Ranks along tp have the same tokens.
  const double mine = real(m.num_experts) / ep_, slots = tokens_ * real(m.moe_top_k);
  const double each = slots / mine, inside = real(config::expert_dim(m)), hidden = real(config::expert_ffn_hidden_dim(m)) / tp_;
  Seconds one;
  for (double i = 0; i < before; ++i) {
    one += product(each, hidden, inside, "", layer);
  }
  one += product(each, inside, hidden, "", layer);
  out += {one.forward * mine, one.inputs * mine, one.weights * mine, one.again * mine};
  out += passes(slots * ((before + 1) * hidden + 4 * inside) * width_, config::recomputes(config_.train, layer));
  return out;
}

Seconds Compute::layer(std::int64_t index) const {
  const config::ModelConfig& m = config_.model;
  Seconds out = projections(index);
  out += attention(index);
  out += feed_forward(index);
  // Two norms read and write the stream, two sums read two and write one; rotation reads and writes queries and keys.
  const double heads = real(m.n_heads + config::kv_heads(m, index)) / tp_ * real(config::head_dim(m, index));
  out += passes((10 * stream_ * real(m.dim) + 2 * tokens_ * heads) * width_, config::recomputes(config_.train, index));
  return out;
}

Seconds Compute::head() const {
  const config::ModelConfig& m = config_.model;
  const double vocabulary = real(m.vocab_size) / tp_;
  Seconds out;
  const double forward = product_seconds(gpu_, peak_, tokens_, vocabulary, real(m.dim), width_);
  out.forward = forward;
  out.inputs = product_seconds(gpu_, peak_, tokens_, real(m.dim), vocabulary, width_);
  out.weights = product_seconds(gpu_, peak_, vocabulary, real(m.dim), tokens_, width_);
  out.again = config_.train.loss_fn == "fused_linear_cross_entropy" ? forward : 0;
  // Logits are read and written in fp32 by the softmax, and once more for the gradient.
  out.forward += tokens_ * vocabulary * 8 / (kMemoryShare * gpu_.memory_bandwidth);
  out.inputs += tokens_ * vocabulary * 8 / (kMemoryShare * gpu_.memory_bandwidth);
  const Seconds once = out;
  for (std::int64_t depth = 0; depth < m.mtp_layers; ++depth) {
    out += once;
    out += layer(m.n_layers - 1);
    out += product(tokens_, real(m.dim), 2 * real(m.dim), "", m.n_layers - 1);
  }
  return out;
}

/// Reads weights, gradients and states, writes weights, states and what forward reads.
double Compute::update(double numbers, double state) const {
  return (numbers * (4 + 4 + 4 + (width_ == 2 ? 2 : 0)) + 2 * state) / (kMemoryShare * gpu_.memory_bandwidth);
}

}  // namespace kf::plan
