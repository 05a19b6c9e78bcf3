#include "parallel/worker.h"

namespace kf {

Worker::~Worker() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
}

std::shared_future<void> Worker::add(std::function<void()> job) {
  std::packaged_task<void()> task(std::move(job));
  std::shared_future<void> end = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(task));
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { loop(); });
  }
  changed_.notify_all();
  return end;
}

void Worker::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || !jobs_.empty(); });
    if (jobs_.empty()) {
      return;  // stopped, and all is done
    }
    std::packaged_task<void()>& job = jobs_.front();  // stays in place: a deque does not move its elements when others are added
    lock.unlock();
    job();
    lock.lock();
    jobs_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace kf
