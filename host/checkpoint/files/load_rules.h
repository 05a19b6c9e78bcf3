#pragma once
// How weights are taken from a source that has not all of them, has others, or calls them otherwise: checkpoint.strict,
// exclude_from_loading, name_map and init_layers.

#include <map>
#include <string>
#include <vector>

#include "checkpoint/files/weights_by_name.h"
#include "core/fs.h"
#include "core/name_map.h"
#include "model/model.h"

namespace kf {

/// Where layers come from that a model has and a file lacks (checkpoint.init_layers).
enum class LayerRule {
  exact,      // refused
  fresh,      // first values
  copy_last,  // the last one of the file, again and again
  interleave  // each layer of the file in turn, as often as it takes: 0 0 1 1 2 2
};

struct LoadRules {
  bool strict = true;                // false: first values stay where a weight is missing, and unknown ones are left out
  std::vector<std::string> exclude;  // patterns of names: these weights keep first values
  NameMap names = {};                // of the file's tensors, to those of the model
  LayerRule layers = LayerRule::exact;

  /// Whether weights may be left that no file fills.
  bool leave_gaps() const { return !strict || !exclude.empty() || layers == LayerRule::fresh; }
};

/// The layer of the file, of `have`, that layer `index` of a model with `want` takes; -1 for none.
std::int64_t layer_of(LayerRule rule, std::int64_t index, std::int64_t have, std::int64_t want);

/// `tensors` under other names: `theirs` by the new one. Several may name one tensor.
NamedTensors renamed(const NamedTensors& tensors, const std::map<std::string, std::string>& theirs);
/// The same by `names`. Throws Code::checkpoint, listing them, where two get one name; `path` is for messages.
NamedTensors renamed(const NamedTensors& tensors, const NameMap& names, const fs::path& path);

/// The tensors with as many layers ("layers.N.") as `model` has, where the file has fewer.
NamedTensors with_layers(LayerRule rule, const NamedTensors& tensors, Model& model, const fs::path& path);

/// Layers by the names of tensors: one more than the largest N of "layers.N.".
std::int64_t count_layers(const std::vector<std::string>& names);
/// Whether the weight of this name is in a layer that LayerRule::fresh makes, where the file has `have`.
bool is_fresh(const LoadRules& rules, const std::string& name, std::int64_t have);

/// Which names one of the patterns of `exclude` means. A pattern that means none of `known` throws Code::config.
std::vector<bool> excluded(const std::vector<std::string>& exclude, const std::vector<std::string>& known);

}  // namespace kf
