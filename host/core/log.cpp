#include "core/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/credentials.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/held_file.h"
#include "core/immortal.h"
#include "core/log_keep.h"
#include "core/plain_file.h"
#include "core/running.h"

namespace kf::log {
namespace {

/// A line from before there was a file.
struct EarlyLine {
  Level level;
  spdlog::log_clock::time_point time;
  std::string text;
};
constexpr std::size_t kMostEarlyLines = 500;
constexpr std::size_t kMostEarlyPrints = 400;     // what a script prints leaves room for the program's own lines
constexpr std::size_t kLongestLine = 1UL << 16U;  // of text without an end, which would fill the memory

struct State {
  std::mutex mutex;
  spdlog::logger terminal{"kf", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
  std::unique_ptr<spdlog::logger> file;
  std::optional<HeldFile> held;  // the same file, for crashes (core/running.h), and to mend it
  std::filesystem::path path;
  std::vector<EarlyLine> early;
  std::string unended;       // the last line of a script's text, so far
  bool errors_only = false;  // on the terminal
  void (*before)() = nullptr;
  void (*after)() = nullptr;
  std::array<std::atomic<std::size_t>, 4> counts{};

  // Plain text for information; a warning or an error says so.
  State() { terminal.set_pattern("%v"); }
};

State& state() {
  static Immortal<State> instance;  // at exit() a crash report still writes into its file
  return instance.value;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// The caller holds the lock.
void append(State& log, Level level, std::string_view line) {
  if (log.file) {
    log.file->log(to_spdlog(level), "{}", line);
    log.file->flush();
  } else if (log.early.size() < kMostEarlyLines) {
    log.early.push_back({level, spdlog::log_clock::now(), std::string(line)});
  }
}

/// The caller holds the lock.
void end_line(State& log) {
  if (log.file || log.early.size() < kMostEarlyPrints) {
    append(log, Level::info, without_credentials(log.unended));
  }
  log.unended.clear();
}

/// A line of the program, behind what a script has begun. The caller holds the lock.
void to_file(State& log, Level level, std::string_view line) {
  if (!log.unended.empty()) {
    end_line(log);
  }
  append(log, level, line);
}

}  // namespace

void write(Level level, std::string_view text) {
  const std::string line = without_credentials(text);
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.counts[static_cast<std::size_t>(level)]++;
  if (level == Level::error || (level != Level::debug && !log.errors_only)) {
    if (log.before != nullptr) {
      log.before();
    }
    const char* prefix = level == Level::warn ? "warning: " : level == Level::error ? "error: " : "";
    log.terminal.log(to_spdlog(level), "{}{}", prefix, line);
    log.terminal.flush();
    if (log.after != nullptr) {
      log.after();
    }
  }
  to_file(log, level, line);
}

void show_errors_only(bool on) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.errors_only = on;
}

void keep(std::string_view text, Level level) {
  const std::string line = without_credentials(text);
  State& log = state();
  const std::lock_guard lock(log.mutex);
  to_file(log, level, line);
}

void keep_text(std::string_view text) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  while (!text.empty()) {
    const std::size_t end = std::min({text.find('\n'), text.size(), kLongestLine - log.unended.size()});
    log.unended += text.substr(0, end);
    const bool ended = end < text.size() && text[end] == '\n';
    if (ended || log.unended.size() == kLongestLine) {
      end_line(log);
    }
    text.remove_prefix(end + (ended ? 1 : 0));
  }
}

namespace {

/// The caller holds the lock.
void open_logger(State& log, const std::filesystem::path& path) {
  try {
    log.file = std::make_unique<spdlog::logger>("file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string()));
  } catch (const spdlog::spdlog_ex& e) {
    fail(Code::other, "cannot open the log file {}: {}", path, e.what());
  }
  log.file->set_level(spdlog::level::debug);
  log.file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  log.path = path;
}

}  // namespace

void open_file(const std::filesystem::path& path) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  const std::string fault = path_exists(path) ? unlike_a_file(path) : "";  // opening a pipe would wait for its reader
  KF_CHECK(fault.empty(), Code::other, "cannot open the log file {}: {}", path, fault);
  open_logger(log, path);
  for (const EarlyLine& line : log.early) {
    log.file->log(line.time, {}, to_spdlog(line.level), line.text);
  }
  log.early.clear();
  log.held.emplace(path);
  set_report_file(log.held->descriptor());
}

void mend_file() {
  State& log = state();
  std::string said;
  {
    const std::lock_guard lock(log.mutex);
    if (!log.held || !log.file) {
      return;
    }
    set_report_file(-1);
    said = log.held->mend();
    set_report_file(log.held->descriptor());
    if (!said.empty()) {
      open_logger(log, log.path);
    }
  }
  if (!said.empty()) {
    warn("{}", said);
  }
}

void close_file() {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  if (log.file && !log.unended.empty()) {
    end_line(log);
  }
  log.file.reset();
  set_report_file(-1);
  log.held.reset();
}

std::size_t count(Level level) { return state().counts[static_cast<std::size_t>(level)]; }

void set_terminal_guard(void (*before)(), void (*after)()) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  log.before = before;
  log.after = after;
}

}  // namespace kf::log
