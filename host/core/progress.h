#pragma once
// How far a long piece of work is, on bytes mostly: a bar that is redrawn on a terminal, a log line every few seconds elsewhere.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace kf {

class Progress {
 public:
  enum class Of : std::int8_t { bytes, things };  // things have no unit and no speed
  /// `doing`: "tokenizing". `counts`: what else is counted, "tokens"; empty for nothing. One that begins while another is on stays silent.
  Progress(std::string doing, std::int64_t total, std::string counts = "", Of of = Of::bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// From any thread: bytes, or things.
  void add(std::int64_t bytes, std::int64_t counted = 0) {
    bytes_ += bytes;
    counted_ += counted;
  }
  /// Bytes that an earlier try has done: not counted in the speed.
  void skip(std::int64_t bytes) {
    bytes_ += bytes;
    skipped_ += bytes;
  }
  /// From one thread: shows the state when it is time to.
  void show();
  double seconds() const;

 private:
  std::string line() const;
  void erase();
  static void before_log();

  std::string doing_;
  std::int64_t total_;
  std::string counts_;
  Of of_;
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> skipped_{0};
  std::atomic<std::int64_t> counted_{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_ = begin_;
  bool terminal_;
  bool shows_ = false;
  std::atomic<bool> drawn_{false};
};

}  // namespace kf
