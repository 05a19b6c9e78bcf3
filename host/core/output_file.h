#pragma once
// Files that a user names for what a command gives.

#include <string_view>

#include "core/fs.h"

namespace kf {

/// Writes `content` to where an option says. A regular file appears whole or not at all (`write_file_atomic`), at the end of the links that
/// lead to it, which stay; a device or a pipe gets the content itself. Throws Code::other.
void write_output(const fs::path& path, std::string_view content);

}  // namespace kf
