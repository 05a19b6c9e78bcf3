#pragma once
// Whether all ranks have the same job.

#include "config/schema/config.h"

namespace kf {

class Group;

/// A script runs on every rank, so it can give each another job: by its rank, a clock, a random number. Throws Code::config on every rank,
/// with the first setting that differs.
void check_same_job(const config::Config& config, Group& all);

}  // namespace kf
