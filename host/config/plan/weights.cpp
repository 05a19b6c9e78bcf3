#include "config/plan/weights.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "config/plan/pipeline.h"
#include "config/plan/recomputation.h"
#include "core/text.h"

namespace kf::plan {

double Weight::numbers() const {
  double out = 1;
  for (const std::int64_t length : shape) {
    out *= static_cast<double>(length);
  }
  return out;
}

namespace {

/// A weight without the number of its layer, in words that differ where anything does that a plan asks for.
std::string words_of(const Weight& w, const std::string& name) {
  std::string out = name + format(" {} {} {}", static_cast<std::int64_t>(w.cut), w.unit, w.state_bytes);
  for (const std::int64_t length : w.shape) {
    out += format(" {}", length);
  }
  for (const bool is : {w.experts, w.low, w.trains, w.buffer, w.whole}) {
    out += is ? " y" : " n";
  }
  return out + ";";
}

}  // namespace

void find_alike(const config::Config& config, Weights& weights) {
  const std::int64_t layers = config.model.n_layers;
  std::vector<std::string> words(static_cast<std::size_t>(layers));
  const auto add = [&](const std::string& name, const auto& words_behind) {
    const std::int64_t layer = layer_of(name, layers);
    if (layer >= 0 && layer < layers) {
      words[static_cast<std::size_t>(layer)] += words_behind(name.substr(format("layers.{}", layer).size()));
    }
  };
  for (const Weight& weight : weights.all) {
    add(weight.name, [&](const std::string& name) { return words_of(weight, name); });
  }
  for (const config::AdaptedLayer& one : weights.adapters) {
    add(one.name, [&](const std::string& name) { return format("{} {} {} {};", name, one.in, one.out, one.rank); });
  }
  std::map<std::string, std::int64_t> first;
  weights.alike.clear();
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::string& own = words[static_cast<std::size_t>(layer)];
    own += config::layer_kind(config.model, layer);
    own += config::is_moe_layer(config.model, layer) ? " experts" : "";
    own += config::recomputes(config.train, layer) ? " again" : "";
    weights.alike.push_back(first.emplace(std::move(own), layer).first->second);
  }
}

std::vector<LikeLayers> layers_of(const Weights& weights, const config::Stage& piece) {
  std::vector<LikeLayers> out;
  for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
    const std::int64_t like = weights.alike.empty() ? layer : weights.alike.at(static_cast<std::size_t>(layer));
    const auto same = std::find_if(out.begin(), out.end(), [like](const LikeLayers& one) { return one.layer == like; });
    if (same != out.end()) {
      ++same->count;
    } else {
      out.push_back({like, 1});
    }
  }
  return out;
}

Composition composition_of(const Weights& weights, const Layout& layout, std::int64_t stage) {
  Composition out;
  for (const config::Stage& piece : layout.stages.at(static_cast<std::size_t>(stage))) {
    std::vector<LikeLayers> layers = layers_of(weights, piece);
    std::sort(layers.begin(), layers.end());
    out.emplace_back(piece.embeds, piece.heads, std::move(layers));
  }
  return out;
}

Layout Layout::of(const config::Config& config, std::int64_t world) {
  const config::DistributedConfig& d = config.distributed;
  Layout out;
  out.mesh = Mesh::of_world(config::degrees_of(d), world);
  out.zero_stage = d.zero_stage;
  const std::int64_t pp = out.mesh.degree(Axis::pp);
  const std::vector<config::Stage> pieces = config::pipeline_stages(config);
  out.stages.resize(static_cast<std::size_t>(pp));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    out.stages[i % out.stages.size()].push_back(pieces[i]);
  }
  return out;
}

std::int64_t Layout::shards(const Weight& weight) const {
  const std::int64_t all = mesh.degree(Axis::dp_shard) * mesh.degree(Axis::cp);
  return weight.experts ? all : all * mesh.degree(Axis::ep);
}

std::int64_t Layout::layers(std::int64_t stage) const {
  std::int64_t out = 0;
  for (const config::Stage& piece : stages.at(static_cast<std::size_t>(stage))) {
    out += piece.end - piece.first;
  }
  return out;
}

std::int64_t layer_of(const std::string& name, std::int64_t layers) {
  constexpr std::string_view prefix = "layers.";
  if (name.starts_with(prefix)) {
    std::int64_t layer = 0;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
    return layer;
  }
  const bool front = name.starts_with("token_embedding") || name.starts_with("position_embedding") || name.starts_with("embed_norm");
  return front ? -1 : layers;
}

bool is_embedding(const Weight& weight) { return weight.name.starts_with("token_embedding"); }

bool on_both_ends(const config::ModelConfig& model) { return model.tie_embeddings || model.mtp_layers > 0; }

std::vector<const Weight*> weights_of(const Weights& weights, const Layout& layout, const config::ModelConfig& model, std::int64_t stage) {
  const auto on_stage = [&](const Weight& weight) {
    const std::int64_t layer = layer_of(weight.name, model.n_layers);
    const bool shared = on_both_ends(model) && is_embedding(weight);
    const std::vector<config::Stage>& pieces = layout.stages.at(static_cast<std::size_t>(stage));
    return std::any_of(pieces.begin(), pieces.end(), [&](const config::Stage& piece) {
      return (layer >= piece.first && layer < piece.end) || (layer == -1 && (piece.embeds || (shared && piece.heads))) ||
             (layer == model.n_layers && piece.heads);
    });
  };
  std::vector<const Weight*> out;
  for (const Weight& weight : weights.all) {
    if (on_stage(weight)) {
      out.push_back(&weight);
    }
  }
  return out;
}

double held_numbers(const Weight& weight, const Layout& layout) {
  double out = weight.numbers() / static_cast<double>(weight.experts ? layout.mesh.degree(Axis::ep) : 1);
  if (weight.cut == Weight::Cut::none) {
    return out;
  }
  const std::size_t dim = (weight.cut == Weight::Cut::columns ? 1 : 0) + (weight.experts ? 1 : 0);
  const std::int64_t length = weight.shape.at(dim);
  // Fewer heads than ranks (kv heads): each rank has one.
  const std::int64_t mine = std::max(length / layout.mesh.degree(Axis::tp), std::min(weight.unit, length));
  return out / static_cast<double>(length) * static_cast<double>(mine);
}

}  // namespace kf::plan
