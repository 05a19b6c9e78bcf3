#pragma once
// Where the relative paths of a job start: at the working folder, else beside the file that says them, so that data travel with a job.

#include "config/load/load.h"
#include "config/tree/node.h"

namespace kf::config {

/// Replaces every path of `merged` that is not there below the working folder, and is beside the file (job, `extends`, script) that gives
/// it, by that one. Where both are there and differ, the working folder's is taken, with a warning. What the command line says starts at
/// the working folder alone.
void settle_paths(Table& merged, Report& report);

}  // namespace kf::config
