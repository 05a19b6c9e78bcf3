#pragma once
// The layers of a job: `extends` chains, the job's TOML, the recipe. The command line comes on top (cli.h).

#include <vector>

#include "config/load.h"

namespace kf::config {

/// Lowest first. Files that are missing, broken or extend each other in a circle become problems.
std::vector<Table> read_layers(const Request& request, Report& report);

/// The node at "data.datasets[0].weight" in a tree, or null.
const Node* find_node(const Table& tree, std::string_view key);

}  // namespace kf::config
