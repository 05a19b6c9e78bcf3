#pragma once
// A thread that does jobs one after the other.

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace kf {

/// The thread starts with the first job. One thread at a time uses a Worker.
class Worker {
 public:
  Worker() = default;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The job's end, or what it threw.
  std::shared_future<void> add(std::function<void()> job);
  /// Waits until all jobs are done: what they wrote may then be read without a lock.
  void drain();

 private:
  void loop();

  std::mutex mutex_;  // guards the three below
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> jobs_;  // the first one is being done
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace kf
