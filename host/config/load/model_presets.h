#pragma once
// Known models by name: model.preset = "llama3-8b" makes its keys the defaults of [model].

#include <optional>
#include <string>
#include <vector>

#include "config/load/load.h"
#include "config/tree/node.h"
#include "core/hub_name.h"

namespace kf::config {

/// In the order of the table: families together, small ones first.
std::vector<std::string> model_preset_names();
/// The [model] keys of a preset; throws Code::config with near names for an unknown one.
Table model_preset(const std::string& name);
/// The keys with about `scale` (a power of two) times the parameters. With k = log2(scale), q = k / 3, r = k % 3: layers grow by 2^q,
/// heads and feed-forward widths by 2^q, doubled if r >= 1, dim by 2^q, doubled if r = 2 (MaxText's rule).
void scale_model(Table& model, std::int64_t scale);

/// The model that a job asks for, and how messages call it.
struct ModelPreset {
  std::string name;
  Table model;
};

/// How the config.json of a model of the hub is had: the folder that holds it. Set once by the program; without it names of the hub are
/// unknown here. May throw.
using HubModels = fs::path (*)(const HubName&);
void set_hub_models(HubModels find);

/// Lays the model that `merged` asks for below its [model]: model.preset (a name, a folder with a config.json, or a GGUF file), or else the
/// config.json in a checkpoint.init_from folder, or the header of such a file, and model.scale. It becomes the lowest of `layers`; what is
/// not understood is a problem.
std::optional<ModelPreset> lay_model_preset(Table& merged, std::vector<Table>& layers, Report& report);
/// Warns of the keys that the job sets otherwise than the preset: the job's own win.
void warn_of_overrides(const ModelPreset& preset, Loaded& loaded);

}  // namespace kf::config
