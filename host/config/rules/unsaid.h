#pragma once
// What a job leaves to defaults that nobody means.

#include <string>
#include <vector>

#include "config/schema/loaded.h"

namespace kf::config {

/// A sentence for each: no [model] at all (the defaults are a model of 6.7 B parameters), no length of the run (100,000 steps).
std::vector<std::string> unsaid(const Loaded& loaded);

}  // namespace kf::config
