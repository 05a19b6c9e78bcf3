#pragma once
// Models and tokenizers of the hub by name: fetched into the cache that Python's tools use, or found there. Only configs, tokenizers and
// weights: safetensors, or pickled ones where there are no others.

#include <cstdint>
#include <memory>
#include <string>

#include "core/fs.h"
#include "core/hub_name.h"

namespace kf::hub {

/// What of a repository is wanted: config.json, also the tokenizer, or all of it.
enum class ModelFiles { config, tokenizer, weights };

/// The snapshot's folder with that part in it. Asks the hub for the revision's commit, once in a process, and fetches what is missing; a
/// commit that is there whole, and HF_HUB_OFFLINE, ask nobody. A hub that cannot be reached is warned of where the cache holds the part.
/// Throws Code::data.
fs::path fetch_model(const HubName& name, ModelFiles part);

/// A path that exists as it is; else the folder of the model that `text` names on the hub; else `text`, which does not exist.
fs::path locate(const std::string& text, ModelFiles part);

/// "X does not exist, and is no name of a model of the hub (ORG/NAME)": for messages about what `locate` could not find.
std::string not_located(const std::string& text);

}  // namespace kf::hub
