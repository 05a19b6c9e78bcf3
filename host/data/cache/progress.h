#pragma once
// How far a build is: a bar that is redrawn on a terminal, a log line every few seconds elsewhere.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace kf::cache {

class Progress {
 public:
  /// `total`: bytes of the source's files.
  explicit Progress(std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// From any thread.
  void add(std::int64_t bytes, std::int64_t tokens) {
    bytes_ += bytes;
    tokens_ += tokens;
  }
  /// Bytes that an earlier build has done: not counted in the speed.
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

  std::int64_t total_;
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::int64_t> skipped_{0};
  std::atomic<std::int64_t> tokens_{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_ = begin_;
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace kf::cache
