#include "core/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
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

constexpr std::size_t kMostWaiting = 1UL << 20U;  // bytes

struct State {
  std::mutex mutex;
  spdlog::logger terminal{"kf", std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
  std::unique_ptr<spdlog::logger> file;
  std::optional<HeldFile> held;  // the file itself; its descriptor also takes the reports of crashes (core/running.h)
  std::string waiting;           // lines that the disk did not take,
  std::size_t left_out = 0;      // and how many more there were
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
void to_terminal(State& log, Level level, std::string_view line) {
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

/// Writes the line behind those that wait, or has it wait, too. The caller holds the lock.
void to_disk(State& log, std::string_view line) {
  const bool waited = !log.waiting.empty();
  const bool fits = log.waiting.size() + line.size() <= kMostWaiting;
  log.waiting += fits ? line : "";
  log.left_out += fits ? 0 : 1;
  try {
    log.held->append(log.waiting);
    log.waiting.clear();
    if (waited) {
      to_terminal(log, Level::warn, format("the log file is written again, without {} lines", std::exchange(log.left_out, 0)));
    }
  } catch (const Error& e) {
    if (!waited) {
      to_terminal(log, Level::warn, format("{}; the log's lines wait in memory until it can be written", e.what()));
    }
  }
}

/// Gives each line its time and its level.
class FileSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FileSink(State& log) : log_(log) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    to_disk(log_, {line.data(), line.size()});
  }
  void flush_() override {}

  State& log_;
};

/// The caller holds the lock.
void append(State& log, Level level, std::string_view line) {
  if (log.file) {
    log.file->log(to_spdlog(level), "{}", line);
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
    to_terminal(log, level, line);
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

void open_file(const std::filesystem::path& path) {
  State& log = state();
  const std::lock_guard lock(log.mutex);
  const std::string fault = path_exists(path) ? unlike_a_file(path) : "";  // opening a pipe would wait for its reader
  KF_CHECK(fault.empty(), Code::other, "cannot open the log file {}: {}", path, fault);
  set_report_file(-1);
  try {
    log.held.emplace(path);
  } catch (const Error& e) {
    log.file.reset();
    fail(Code::other, "cannot open the log file {}: {}", path, e.what());
  }
  set_report_file(log.held->descriptor());
  log.waiting.clear();
  log.file = std::make_unique<spdlog::logger>("file", std::make_shared<FileSink>(log));
  log.file->set_level(spdlog::level::debug);
  log.file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  for (const EarlyLine& line : log.early) {
    log.file->log(line.time, {}, to_spdlog(line.level), line.text);
  }
  log.early.clear();
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
    try {
      said = log.held->mend();
    } catch (const std::exception& e) {
      said = format("the log file was not looked after: {}", e.what());
    }
    set_report_file(log.held->descriptor());
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
  log.waiting.clear();
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
