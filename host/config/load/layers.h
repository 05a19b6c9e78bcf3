#pragma once
// The layers of a job: `extends` chains, the job's TOML, the recipe. The command line comes on top (cli.h).

#include <vector>

#include "config/load/load.h"

namespace kf::config {

/// Lowest first. Files that are missing, broken or extend each other in a circle become problems.
std::vector<Table> read_layers(const Request& request, Report& report);

}  // namespace kf::config
