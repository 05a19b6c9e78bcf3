#pragma once
// Lines for the run's log file alone.

#include <string_view>

#include "core/log.h"

namespace kf::log {

/// For what reaches the terminal by another way, as a row of the table. Thread-safe.
void keep(std::string_view line, Level level = Level::info);
/// For text that a script writes to standard output, in pieces of any size: a line is kept when it ends, what has no end when the
/// program's next line comes or the file is closed. Thread-safe.
void keep_text(std::string_view text);

}  // namespace kf::log
