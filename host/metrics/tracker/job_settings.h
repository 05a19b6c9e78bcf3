#pragma once
// The settings of a run as trackers of experiments show them.

#include <string>
#include <utility>
#include <vector>

#include "config/tree/node.h"
#include "metrics/sink.h"

namespace kf {

/// The resolved job (RunInfo::job_toml), section by section; empty where a run has none.
config::Table job_settings(const RunInfo& run);

/// Its values by key, "optimizer.lr": numbers, booleans and texts as they are, lists as JSON.
std::vector<std::pair<std::string, config::Node>> setting_leaves(const config::Table& settings);

}  // namespace kf
