#pragma once
// `kf-host runs/NAME`: a run goes on from its folder alone, without the job or the script that it was started with.

#include "app/line/arguments.h"
#include "core/fs.h"
#include "run/launch.h"

namespace kf {

/// Trains the job.toml of the folder `arguments.file` under the overrides, or tries it (--dry-run); its script's copy registers the parts.
/// Throws what goes wrong.
void continue_run(const TrainArguments& arguments, const Launch& launch);

}  // namespace kf
