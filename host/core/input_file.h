#pragma once
// Files that a user names.

#include "core/error.h"
#include "core/fs.h"

namespace kf {

/// `read_file`, whose faults (no such file, a device, a pipe, a folder, no permission) get the code of what the file is for: the exit
/// status is then that of every other fault of such a file.
std::string read_input(const fs::path& path, Code code);

}  // namespace kf
