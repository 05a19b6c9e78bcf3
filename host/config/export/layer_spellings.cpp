// What differs from layer to layer, in the words of config.json.

#include <algorithm>

#include "config/export/spellings.h"
#include "config/plan/derived.h"

namespace kf::config {
namespace {

constexpr std::int64_t kMostLayers = 100'000;

std::int64_t layers_of(const ModelConfig& m) { return std::clamp<std::int64_t>(m.n_layers, 0, kMostLayers); }

Array list(const ModelConfig& m, Node (*entry)(const ModelConfig&, std::int64_t)) {
  Array out;
  for (std::int64_t i = 0; i < layers_of(m); ++i) {
    out.push_back(entry(m, i));
  }
  return out;
}

Node attention_type(const ModelConfig& m, std::int64_t layer) {
  const std::string& kind = layer_kind(m, layer);
  return Node(std::string(kind == "local" ? "sliding_attention" : kind == "chunk" ? "chunked_attention" : "full_attention"));
}

void add_windows(std::vector<Spelling>& out, const ModelConfig& m) {
  const Node types(list(m, attention_type));
  const Node window(m.window);
  std::int64_t first = 0;  // local layer
  while (first < layers_of(m) && layer_kind(m, first) != "local") {
    ++first;
  }
  if (first == layers_of(m)) {
    out.push_back({{"sliding_window", Node()}});
    out.push_back({{"use_sliding_window", Node(false)}});
    out.push_back({{"layer_types", types}});
    out.push_back({{"sliding_window", Node()}, {"layer_types", types}});
    out.push_back({{"use_sliding_window", Node(false)}, {"layer_types", std::nullopt}});
    out.push_back({{"sliding_window", Node()}, {"layer_types", std::nullopt}});
    return;
  }
  out.push_back({{"sliding_window", window}});
  out.push_back({{"sliding_window", window}, {"layer_types", types}});
  out.push_back({{"use_sliding_window", Node(true)}, {"sliding_window", window}, {"layer_types", types}});
  out.push_back(
      {{"use_sliding_window", Node(true)}, {"sliding_window", window}, {"max_window_layers", Node(first)}, {"layer_types", std::nullopt}});
}

/// GPT-Neo's: kinds once through.
void add_attention_types(std::vector<Spelling>& out, const ModelConfig& m) {
  Array kinds;
  for (std::int64_t i = 0; i < layers_of(m); ++i) {
    kinds.emplace_back(layer_kind(m, i));
  }
  const Node types(Array{Node(Array{Node(kinds), Node(std::int64_t{1})})});
  const Spelling plain{{"attention_types", types}, {"attention_layers", std::nullopt}};
  out.push_back(plain);
  if (m.window > 0) {
    Spelling sliding = plain;
    sliding.emplace_back("window_size", Node(m.window));
    out.push_back(sliding);
  }
}

/// Llama 4's and SmolLM 3's: 1 where a layer rotates.
void add_rotation(std::vector<Spelling>& out, const ModelConfig& m) {
  const Node rotates(list(m, [](const ModelConfig& c, std::int64_t i) { return Node(std::int64_t{has_rope(c, i) ? 1 : 0}); }));
  const Node chunk = m.chunk > 0 ? Node(m.chunk) : Node();
  out.push_back({{"no_rope_layers", rotates}});
  out.push_back({{"no_rope_layers", rotates}, {"layer_types", Node(list(m, attention_type))}});
  out.push_back({{"no_rope_layers", rotates}, {"layer_types", Node(list(m, attention_type))}, {"attention_chunk_size", chunk}});
  out.push_back({{"attention_chunk_size", chunk}});
}

void add_expert_layers(std::vector<Spelling>& out, const ModelConfig& m) {
  if (!is_moe(m)) {
    return;
  }
  const Node types(
      list(m, [](const ModelConfig& c, std::int64_t i) { return Node(std::string(is_moe_layer(c, i) ? "sparse" : "dense")); }));
  Array dense, experts;
  for (std::int64_t i = 0; i < layers_of(m); ++i) {
    (is_moe_layer(m, i) ? experts : dense).emplace_back(i);
  }
  const Node first(is_moe_layer(m, 0) || experts.empty() ? std::int64_t{0} : std::get<std::int64_t>(experts.front().value));
  const bool prefix = static_cast<std::int64_t>(experts.size()) == layers_of(m) - std::get<std::int64_t>(first.value);
  if (prefix) {
    out.push_back({{"first_k_dense_replace", first}});
    out.push_back({{"num_dense_layers", first}});
    out.push_back({{"moe_layer_start_index", first}, {"moe_layer_interval", Node(std::int64_t{1})}});
  }
  out.push_back({{"moe_layer_start_index", Node(m.moe_first_dense)}, {"moe_layer_interval", Node(m.moe_frequency)}});
  out.push_back({{"mlp_layer_types", types}});
  out.push_back({{"mlp_layer_types", types}, {"first_k_dense_replace", std::nullopt}});
  out.push_back({{"decoder_sparse_step", Node(std::int64_t{1})}, {"mlp_only_layers", Node(dense)}});
  out.push_back({{"moe_layers", Node(experts)}});
}

}  // namespace

std::vector<Spelling> layer_spellings(const ModelConfig& model) {
  std::vector<Spelling> out;
  add_windows(out, model);
  add_attention_types(out, model);
  add_rotation(out, model);
  add_expert_layers(out, model);
  return out;
}

}  // namespace kf::config
