#pragma once
// What the thread that trains is in, for an end that comes back to nobody: a crash, exit() from a library, a hang at the end of the grace.

#include <atomic>
#include <cstdint>

namespace kf {

/// Says for its scope what runs: "recipe.lua:3: hook 'x'", "on_step_end", 7. The texts must outlive it. Scopes nest; two stores to memory.
/// On the thread that has the Lua state only.
class Running {
 public:
  explicit Running(const char* what, const char* doing = nullptr, std::int64_t step = -1)
      : what_(what), doing_(doing), step_(step), outer_(current_.load(std::memory_order_relaxed)) {
    current_.store(this, std::memory_order_release);
  }
  ~Running() { current_.store(outer_, std::memory_order_release); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// A line "  in ..." for each scope into `fd`, the innermost first. Does only what a signal handler may.
  static void write(int fd);
  /// The same as a report.
  static void report();
  /// From now on there is no scope: what runs ends the process as it is meant to.
  static void forget() { current_.store(nullptr, std::memory_order_release); }
  /// Whether there is any scope.
  static bool any() { return current_.load(std::memory_order_acquire) != nullptr; }

 private:
  static inline std::atomic<const Running*> current_{nullptr};

  const char* what_;
  const char* doing_;
  std::int64_t step_;
  const Running* outer_;
};

/// Writes text, or a whole number, as a signal handler may.
void write_plain(int fd, const char* text);
void write_plain(int fd, std::int64_t number);

/// Into standard error, and into the file of set_report_file.
void report(const char* text);
void report(std::int64_t number);
/// The descriptor of the run's log, for what nobody can log any more; -1: none.
void set_report_file(int fd);

}  // namespace kf
