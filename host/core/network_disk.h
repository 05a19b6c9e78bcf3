#pragma once
// Whether a path lies on a file system that several machines share.

#include "core/fs.h"

namespace kf {

/// "NFS", "Lustre", ... of what holds `path` (or its nearest folder that is there); "" for a disk of this machine, and where nothing is
/// known.
std::string network_disk(const fs::path& path);

}  // namespace kf
