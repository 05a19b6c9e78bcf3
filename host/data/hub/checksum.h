#pragma once
// Checksums as the hub names them.

#include <string>

#include "core/fs.h"

namespace kf::hub {

/// Of a file: sha256, or what git calls a blob (sha1 of "blob SIZE", a NUL byte and the content). Throws Code::data.
std::string checksum_of(const fs::path& path, bool sha256);

}  // namespace kf::hub
