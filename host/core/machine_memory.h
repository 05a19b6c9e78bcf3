#pragma once
// How much memory this process may still take.

#include <string>

#include "core/fs.h"

namespace kf {

struct FreeMemory {
  double bytes = 0;   // 0 when nothing could be found out
  std::string limit;  // what sets it: "free memory of the machine", "the control group /sys/fs/cgroup/job", "ulimit -v"
};

/// The least of what the machine has available (MemAvailable), what the control groups of this process leave (v2 and v1, every level; pages
/// of files that can be dropped count as free) and what `ulimit -v` and `ulimit -d` leave. `root` is "/", but for tests.
FreeMemory free_memory(const fs::path& root = "/");

}  // namespace kf
