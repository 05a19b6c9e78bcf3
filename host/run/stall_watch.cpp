#include "run/stall_watch.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/running.h"
#include "core/stacks/stacks.h"

namespace kf {

StallWatch::StallWatch(StallOptions options) : options_(std::move(options)), last_(Clock::now()) {
  constexpr double kLongest = 1e9;  // seconds; more is for ever
  if (options_.seconds > 0 && options_.seconds < kLongest) {
    thread_ = std::thread([this] { watch(); });
  }
}

StallWatch::~StallWatch() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(guard_);
    over_ = true;
  }
  news_.notify_one();
  thread_.join();
}

void StallWatch::alive(const std::string& doing, std::int64_t step) {
  if (!thread_.joinable()) {
    return;
  }
  const std::lock_guard<std::mutex> lock(guard_);  // nobody is woken: the thread looks again when its time is over
  last_ = Clock::now();
  doing_ = doing;
  step_ = step;
  reported_ = false;
}

void StallWatch::watch() {
  const auto longest = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds));
  std::unique_lock<std::mutex> lock(guard_);
  while (!over_) {
    const Clock::time_point due = reported_ ? Clock::now() + longest : last_ + longest;
    if (news_.wait_until(lock, due, [this] { return over_; })) {
      return;
    }
    if (reported_ || Clock::now() < last_ + longest) {
      continue;  // it has moved since
    }
    reported_ = true;
    const std::string doing = doing_;
    const std::int64_t step = step_;
    lock.unlock();
    report(doing, step);
    lock.lock();
  }
}

void StallWatch::report(const std::string& doing, std::int64_t step) const {
  const std::string text = format("the run has not moved for {} s (step {}, {}; run.stall_timeout_sec)", std::llround(options_.seconds),
                                  step, doing.empty() ? "before the first step" : doing);
  try {
    const fs::path file =
        options_.folder / format("stall_step_{}", step) / (options_.rank == 0 ? "stacks.txt" : format("stacks.rank-{}.txt", options_.rank));
    fs::create_directories(file.parent_path());
    write_file_atomic(file, text + "\n\n" + stacks_of_all_threads());
    log::warn("{}: the stacks of all threads are in {}", text, file);
  } catch (const std::exception& e) {
    log::warn("{}, and its stacks could not be written: {}", text, e.what());
  }
  if (options_.abort) {
    kf::report("\nkf-host: ");
    kf::report(text.c_str());
    kf::report("; run.on_stall = \"abort\" ends the process without a further save\n");
    Running::report();
    ::_exit(static_cast<int>(Code::machine));
  }
}

}  // namespace kf
