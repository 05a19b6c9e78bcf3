#pragma once
// Weights of a plain decoder as a plan sees them, written by hand: the engine's own ones are planned in planned_memory_test.cpp.

#include <string>

#include "config/plan/derived.h"
#include "config/plan/weights.h"

namespace kf::plan::test {

inline Weight weight(const std::string& name, std::vector<std::int64_t> shape, Weight::Cut cut = Weight::Cut::none, std::int64_t unit = 1) {
  Weight out;
  out.name = name;
  out.shape = std::move(shape);
  out.cut = cut;
  out.unit = unit;
  out.low = out.shape.size() >= 2;
  out.state_bytes = 8 * out.numbers();
  return out;
}

/// Grouped attention, dense or with experts in every layer, RMS norms, a head of its own; Adam's two moments in fp32.
inline Weights weights_of(const config::ModelConfig& m) {
  using Cut = Weight::Cut;
  const std::int64_t width = config::head_dim(m), hidden = config::ffn_hidden_dim(m);
  Weights out;
  out.all.push_back(weight("token_embedding.embedding.weight", {m.vocab_size, m.dim}, Cut::rows));
  for (std::int64_t i = 0; i < m.n_layers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    out.all.push_back(weight(layer + "attention.q_proj.weight", {m.n_heads * width, m.dim}, Cut::rows, width));
    out.all.push_back(weight(layer + "attention.k_proj.weight", {config::kv_heads(m) * width, m.dim}, Cut::rows, width));
    out.all.push_back(weight(layer + "attention.v_proj.weight", {config::kv_heads(m) * width, m.dim}, Cut::rows, width));
    out.all.push_back(weight(layer + "attention.o_proj.weight", {m.dim, m.n_heads * width}, Cut::columns, width));
    const std::int64_t experts = m.num_experts, each = experts > 0 ? config::expert_ffn_hidden_dim(m) : hidden;
    const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns, Cut cut) {
      out.all.push_back(weight(layer + "mlp." + name, {rows, columns}, cut));
      if (experts > 0) {
        out.all.back() = weight(layer + "mlp." + name, {experts, rows, columns}, cut);
        out.all.back().experts = true;
      }
    };
    if (config::mlp_gated(m)) {
      matrix("gate_proj.weight", each, m.dim, Cut::rows);
    }
    matrix("up_proj.weight", each, m.dim, Cut::rows);
    matrix("down_proj.weight", m.dim, each, Cut::columns);
    out.all.push_back(weight(layer + "attention_norm.weight", {m.dim}));
    out.all.push_back(weight(layer + "mlp_norm.weight", {m.dim}));
  }
  out.all.push_back(weight("norm.weight", {m.dim}));
  out.all.push_back(weight("output_head.proj.weight", {m.vocab_size, m.dim}, Cut::rows));
  return out;
}

}  // namespace kf::plan::test
