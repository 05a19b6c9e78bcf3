#pragma once
// Where the copies of a run lie below checkpoint.mirror, and which run they are of: a file mirror.json beside them says so.

#include <string>

#include "config/plan/plan.h"
#include "config/schema/config.h"
#include "core/fs.h"

namespace kf {

/// Below checkpoint.mirror as run.dir lies below the working folder, under its absolute path where it lies elsewhere. Copies of this run
/// under another ending of that path ("runs/m" of "/a/runs/m") are found first: it was started from another folder. Empty: no mirror.
fs::path mirror_folder(const config::Config& config, const config::Plan& plan);

/// The run of which the copies in `mirror` are; "" where nothing says so.
std::string mirrored_id(const fs::path& mirror);

/// Throws Code::config where the copies in `mirror` are of another run. A run whose own folder does not say its id any more is known by
/// where that folder lies.
void check_mirror_owner(const fs::path& mirror, const config::Config& config, const config::Plan& plan);

/// From now on the copies in `mirror` are of this run.
void sign_mirror(const fs::path& mirror, const std::string& id, const fs::path& run_dir);

}  // namespace kf
