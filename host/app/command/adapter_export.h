#pragma once
// What a run with [adapter] has trained, as a folder of PEFT's.

#include <string>

#include "core/fs.h"

namespace kf {

/// adapter_config.json and adapter_model.safetensors of a checkpoint, into `folder`; says so. `script` registers the parts that the job
/// names ("": the run's own copy). Returns the exit status.
int export_adapter(const fs::path& source, const fs::path& folder, const std::string& script);

}  // namespace kf
