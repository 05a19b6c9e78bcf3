#pragma once
// run.stall_timeout_sec: a run that stands still says where.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "core/fs.h"

namespace kf {

struct StallOptions {
  double seconds = 0;    // without a sign of life; 0: nobody looks
  bool abort = false;    // end the process then, with Code::machine
  fs::path folder = {};  // of incidents
  std::int64_t rank = 0;
};

/// A thread that waits for signs of life. Where none comes in time it writes the stacks of all threads into FOLDER/stall_step_N/stacks.txt
/// (stacks.rank-K.txt of the ranks that do not lead) and warns, once for each time that the run stands still.
class StallWatch {
 public:
  explicit StallWatch(StallOptions options);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// A sign of life: what the run does now ("steps"), at this step.
  void alive(const std::string& doing, std::int64_t step);

 private:
  using Clock = std::chrono::steady_clock;
  void watch();
  void report(const std::string& doing, std::int64_t step) const;

  StallOptions options_;
  std::mutex guard_;
  std::condition_variable news_;
  Clock::time_point last_;
  std::string doing_;
  std::int64_t step_ = 0;
  bool reported_ = false;  // that it stands still
  bool over_ = false;
  std::thread thread_;  // last: it uses all of these
};

}  // namespace kf
