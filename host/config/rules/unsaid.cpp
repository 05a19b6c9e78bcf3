#include "config/rules/unsaid.h"

#include <algorithm>

#include "config/plan/derived.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// Whether a layer (a preset, too) says something of `key`, a section or a setting.
bool said(const Table& merged, const std::string& key) {
  const Node* const node = find_node(merged, key);
  if (node == nullptr) {
    return false;
  }
  if (node->table() == nullptr) {
    return node->origin.kind != Origin::Kind::fallback;
  }
  const Table& table = *node->table();
  return std::any_of(table.begin(), table.end(), [](const auto& entry) {
    return entry.second.table() != nullptr || entry.second.origin.kind != Origin::Kind::fallback;
  });
}

}  // namespace

std::vector<std::string> unsaid(const Loaded& loaded) {
  const Config& config = loaded.config;
  std::vector<std::string> out;
  if (!said(loaded.merged, "model")) {
    const double billions = static_cast<double>(parameter_count(config.model)) / 1e9;
    out.push_back(
        format("the job has no [model]: it gets the defaults, {} B parameters (dim {}, {} layers, vocabulary {}); name a preset "
               "(model.preset, `kf-host config presets`) or sizes of your own",
               fixed(billions, 1), config.model.dim, config.model.n_layers, config.model.vocab_size));
  }
  const bool ends = said(loaded.merged, "train.max_steps") || said(loaded.merged, "train.max_tokens") || config.data.epochs > 0;
  if (!ends) {
    out.push_back(
        format("the job does not say how long it trains: it gets the default, {} steps; set train.max_steps, train.max_tokens or "
               "data.epochs",
               grouped(config.train.max_steps)));
  }
  return out;
}

}  // namespace kf::config
