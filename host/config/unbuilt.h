#pragma once
// The one list of settings whose machinery is still to come. An entry goes when its feature is built.

#include <string>
#include <vector>

#include "config/load.h"

namespace kf::config {

/// One sentence for each key that the job sets and that has no effect in this build, unless its value says what happens anyway
/// (metrics.enable_wandb = false).
std::vector<std::string> keys_without_effect(const Loaded& loaded);

}  // namespace kf::config
