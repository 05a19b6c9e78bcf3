#pragma once
// Lines for the run's log file alone.

#include <string_view>

#include "core/log.h"

namespace kf::log {

/// For what reaches the terminal by another way, as a row of the table. Thread-safe.
void keep(std::string_view line, Level level = Level::info);

}  // namespace kf::log
