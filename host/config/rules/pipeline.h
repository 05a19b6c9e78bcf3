#pragma once
// Rules about stages of a pipeline; part of parallel_rules.

#include <vector>

#include "config/rules/rules.h"

namespace kf::config {

std::vector<Rule> pipeline_rules();

}  // namespace kf::config
