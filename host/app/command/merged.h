#pragma once
// A model with its adapter in its weights, as a checkpoint: `adapter export --merged` and `checkpoint merge-lora`.

#include "app/script/inference.h"
#include "registry/registries.h"

namespace kf {

/// Where a folder of this name comes, links followed. Throws Code::checkpoint where something is there.
fs::path free_folder(const fs::path& given);

/// The model of a checkpoint, which has an adapter. `script` registers its parts. Throws Code::config where there is no adapter.
LoadedModel load_with_adapter(const fs::path& source, ScriptSession& script);

/// A checkpoint of the merged model in the new folder `folder`: without an optimizer's state, so that runs start from it
/// (checkpoint.init_from) and none goes on.
void write_merged(const fs::path& folder, const LoadedModel& loaded, const Registries& registries);

}  // namespace kf
