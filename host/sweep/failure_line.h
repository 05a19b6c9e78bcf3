#pragma once
// What a failed program said last.

#include <string>

#include "core/fs.h"

namespace kf::sweep {

/// The end of a failed program's output, one line: its message ("kf-host: ...") where there is one, else the last line.
std::string failure_line(const fs::path& output);

}  // namespace kf::sweep
