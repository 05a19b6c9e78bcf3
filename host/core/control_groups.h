#pragma once
// The control groups that this process is in.

#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

struct ControlGroup {
  fs::path folder;  // with the files of the controller
  int version = 2;
};

/// Those of `controller` ("memory", "cpu"), v2 and v1, every level up to the mount: a limit above binds, too. Levels that are not seen here
/// (inside a container the path may be one of the host) are listed all the same; their files are missing. `root` is "/", but for tests.
std::vector<ControlGroup> control_groups(const std::string& controller, const fs::path& root = "/");

/// The first line of a small file of /proc or /sys; "" where there is none.
std::string first_line(const fs::path& file);

}  // namespace kf
