#include "config/plan/weights.h"

#include <algorithm>
#include <charconv>

#include "config/plan/budget.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::plan {
namespace {

/// The pieces of the model in order, by pp_layers or by cost.
std::vector<config::Stage> pieces_of(const config::Config& config, std::int64_t count) {
  const std::vector<std::int64_t>& given = config.distributed.pp_layers;
  const std::int64_t layers = config.model.n_layers;
  if (count == 1) {
    return {config::whole_stage(config.model)};
  }
  if (given.empty()) {
    return config::cut_stages(config.model, count, config.train.seq_len);
  }
  KF_CHECK(static_cast<std::int64_t>(given.size()) == count, Code::config, "distributed.pp_layers has {} pieces, and {} are needed",
           given.size(), count);
  std::vector<config::Stage> out;
  std::int64_t first = 0;
  for (const std::int64_t length : given) {
    out.push_back({first, first + length, out.empty(), static_cast<std::int64_t>(out.size()) + 1 == count});
    first += length;
  }
  KF_CHECK(first == layers, Code::config, "distributed.pp_layers has {} layers, and model.n_layers is {}", first, layers);
  return out;
}

}  // namespace

double Weight::numbers() const {
  double out = 1;
  for (const std::int64_t length : shape) {
    out *= static_cast<double>(length);
  }
  return out;
}

Layout Layout::of(const config::Config& config, std::int64_t world) {
  const config::DistributedConfig& d = config.distributed;
  Layout out;
  out.mesh = Mesh::of_world(config::degrees_of(d), world);
  out.zero_stage = d.zero_stage;
  const std::int64_t pp = out.mesh.degree(Axis::pp);
  const std::int64_t chunks = pp > 1 && d.pp_schedule == "interleaved_1f1b" ? d.pp_chunks : 1;
  const std::vector<config::Stage> pieces = pieces_of(config, pp * chunks);
  out.stages.resize(static_cast<std::size_t>(pp));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    out.stages[i % out.stages.size()].push_back(pieces[i]);
  }
  return out;
}

std::int64_t Layout::shards(const Weight& weight) const {
  const std::int64_t all = mesh.degree(Axis::dp_shard) * mesh.degree(Axis::cp);
  return weight.cut == Weight::Cut::experts ? all : all * mesh.degree(Axis::ep);
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

std::vector<const Weight*> weights_of(const Weights& weights, const Layout& layout, const config::ModelConfig& model, std::int64_t stage) {
  const auto on_stage = [&](const Weight& weight) {
    const std::int64_t layer = layer_of(weight.name, model.n_layers);
    const bool shared = model.tie_embeddings && weight.name.starts_with("token_embedding");
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
  const bool experts = weight.cut == Weight::Cut::experts;
  const std::int64_t parts = weight.cut == Weight::Cut::none ? 1 : layout.mesh.degree(experts ? Axis::ep : Axis::tp);
  const std::int64_t length = weight.cut == Weight::Cut::none ? 1 : weight.shape.at(weight.cut == Weight::Cut::columns ? 1 : 0);
  // Fewer heads than ranks (kv heads): each rank has one.
  const std::int64_t mine = std::max(length / parts, std::min(weight.unit, length));
  return weight.numbers() / static_cast<double>(length) * static_cast<double>(mine);
}

}  // namespace kf::plan
