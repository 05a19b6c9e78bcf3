#pragma once
// What context parallelism (distributed.cp) makes of a job.

#include <string>

#include "config/schema/config.h"

namespace kf::config {

/// Why keys and values of all ranks are gathered where distributed.cp_method = "ring" asks for a ring; empty where there is one.
std::string why_no_ring(const Config& config);

/// Whether keys and values go round the ranks of cp; otherwise all of them are gathered.
bool uses_ring(const Config& config);

}  // namespace kf::config
