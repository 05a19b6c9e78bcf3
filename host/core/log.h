#pragma once
// Log lines on stderr, and in the run's log file once there is one. spdlog stays inside log.cpp (torch ships another fmt).

#include <filesystem>
#include <string>
#include <string_view>

#include "core/text.h"

namespace kf::log {

enum class Level { debug, info, warn, error };

/// Writes one line. Thread-safe.
void write(Level level, std::string_view line);

template <class... Args>
void info(std::string_view pattern, const Args&... args) {
  write(Level::info, format(pattern, args...));
}
template <class... Args>
void warn(std::string_view pattern, const Args&... args) {
  write(Level::warn, format(pattern, args...));
}
template <class... Args>
void error(std::string_view pattern, const Args&... args) {
  write(Level::error, format(pattern, args...));
}

/// Lines that the disk does not take wait in memory, 1 MiB of them, and are written when it does again; the terminal tells of both.
/// Copies every line since the program started or the last file was closed, and every later one, with time and level, to `path` (appended).
/// Closes the earlier file, if any.
void open_file(const std::filesystem::path& path);
void close_file();
/// Where others deleted or replaced that file: writes it again, whole, with a warning; also where that cannot be done.
void mend_file();
/// Information and warnings stay off the terminal from now on, or come back: of several ranks one tells.
void show_errors_only(bool on);
/// Lines written since the program started, by level: lets a test ask whether something was said.
std::size_t count(Level level);
/// Called before a line reaches the terminal and after, so that a progress bar can step aside. May be empty.
void set_terminal_guard(void (*before)(), void (*after)());

}  // namespace kf::log
