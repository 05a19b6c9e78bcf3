#include "checkpoint/files/load_rules.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/log.h"
#include "core/name_pattern.h"
#include "core/text.h"

namespace kf {
namespace {

constexpr std::string_view kLayers = "layers.";

/// "layers.3.mlp.up_proj.weight" is 3 and ".mlp.up_proj.weight".
struct LayerName {
  std::int64_t layer = 0;
  std::string rest;
};

std::optional<LayerName> layer_name(const std::string& name) {
  if (!name.starts_with(kLayers)) {
    return std::nullopt;
  }
  LayerName out;
  const char* const begin = name.data() + kLayers.size();
  const char* const end = name.data() + name.size();
  const auto [dot, error] = std::from_chars(begin, end, out.layer);
  if (error != std::errc() || dot == end || *dot != '.' || out.layer < 0) {
    return std::nullopt;
  }
  out.rest = std::string(dot, end);
  return out;
}

}  // namespace

std::int64_t layer_of(LayerRule rule, std::int64_t index, std::int64_t have, std::int64_t want) {
  switch (rule) {
    case LayerRule::exact:
    case LayerRule::fresh: return index < have ? index : -1;
    case LayerRule::copy_last: return std::min(index, have - 1);
    case LayerRule::interleave: return index * have / want;
  }
  return index;
}

std::int64_t count_layers(const std::vector<std::string>& names) {
  std::int64_t count = 0;
  for (const std::string& name : names) {
    if (const auto found = layer_name(name)) {
      count = std::max(count, found->layer + 1);
    }
  }
  return count;
}

bool is_fresh(const LoadRules& rules, const std::string& name, std::int64_t have) {
  const auto found = layer_name(name);
  return rules.layers == LayerRule::fresh && found && found->layer >= have;
}

NamedTensors renamed(const NamedTensors& tensors, const std::map<std::string, std::string>& theirs) {
  NamedTensors out;
  for (const auto& [ours, name] : theirs) {
    out.names.push_back(ours);
  }
  out.get = [get = tensors.get, theirs](const std::string& name) { return get(theirs.at(name)); };
  if (tensors.ranged) {
    out.ranged = {[kind = tensors.ranged->kind, theirs](const std::string& name) { return kind(theirs.at(name)); },
                  [read = tensors.ranged->read, theirs](const TensorPiece& into) {
                    TensorPiece piece = into;
                    piece.name = theirs.at(into.name);
                    read(piece);
                  }};
  }
  return out;
}

NamedTensors renamed(const NamedTensors& tensors, const NameMap& names, const fs::path& path) {
  if (names.empty()) {
    return tensors;
  }
  std::map<std::string, std::string> theirs;
  std::string twice;
  for (const std::string& name : tensors.names) {
    const auto [entry, is_new] = theirs.emplace(names.of(name), name);
    if (!is_new) {
      twice += format("\n  {} and {} both become {}", entry->second, name, entry->first);
    }
  }
  KF_CHECK(twice.empty(), Code::checkpoint, "{}: checkpoint.name_map gives tensors one name:{}", path, twice);
  const auto changed = std::count_if(theirs.begin(), theirs.end(), [](const auto& entry) { return entry.first != entry.second; });
  log::info("checkpoint.name_map: {} of {} names of {} are changed", changed, theirs.size(), path);
  return renamed(tensors, theirs);
}

NamedTensors with_layers(LayerRule rule, const NamedTensors& tensors, Model& model, const fs::path& path) {
  std::vector<std::string> weights;
  for (const ParameterPtr& weight : model.parameters()) {
    weights.push_back(weight->name);
  }
  const std::int64_t have = count_layers(tensors.names), want = count_layers(weights);
  if (rule == LayerRule::exact || have == 0 || want <= have) {
    return tensors;
  }
  std::map<std::string, std::string> theirs;
  std::map<std::int64_t, std::vector<std::pair<std::string, std::string>>> layers;  // the rest of a name, the name
  for (const std::string& name : tensors.names) {
    if (const auto found = layer_name(name)) {
      layers[found->layer].emplace_back(found->rest, name);
    } else {
      theirs[name] = name;
    }
  }
  for (std::int64_t layer = 0; layer < want; ++layer) {
    for (const auto& [rest, name] : layers[layer_of(rule, layer, have, want)]) {
      theirs[std::string(kLayers) + std::to_string(layer) + rest] = name;
    }
  }
  const char* const how = rule == LayerRule::fresh       ? "the further ones are new, drawn by train.seed"
                          : rule == LayerRule::copy_last ? "the further ones are copies of the last one"
                                                         : "each is repeated where it stands";
  log::info("checkpoint.init_layers: {} has {} layers and the model {}: {}", path, have, want, how);
  return renamed(tensors, theirs);
}

std::vector<bool> excluded(const std::vector<std::string>& exclude, const std::vector<std::string>& known) {
  return match_names(exclude, known, "checkpoint.exclude_from_loading");
}

}  // namespace kf
