#pragma once
// The one list of settings and parts whose machinery is still to come. An entry goes when its feature is built.

#include <string>
#include <vector>

#include "config/load.h"

namespace kf::config {

/// Parts of the reference that a job may name although this build cannot run them yet: presets that use them load and validate.
std::vector<std::string> planned_parts(const std::string& kind);

/// Parts that this job chooses and that are not in the catalog yet, as sentences. A run must refuse them.
std::vector<std::string> missing_parts(const Loaded& loaded, const Catalog& catalog);

/// One sentence for each key that the job sets and that has no effect in this build, unless its value says what happens anyway
/// (activation_checkpointing = "none").
std::vector<std::string> keys_without_effect(const Loaded& loaded);

}  // namespace kf::config
