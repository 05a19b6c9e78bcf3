#pragma once
// Answers about a job: where a value comes from, and what differs between two.

#include <string>

#include "config/load/load.h"

namespace kf::config {

/// Value, origins, type, allowed values and doc of a key; a section's name gives its keys. Throws Code::config for an unknown key.
std::string explain(const Loaded& loaded, const std::string& key, const Catalog& catalog);

/// One line for each key that differs: key, both values, where each stands.
std::string diff(const Loaded& a, const Loaded& b);

}  // namespace kf::config
