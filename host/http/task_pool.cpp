#include "http/task_pool.h"

#include <httplib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace kf::http {

struct TaskPool::Shared {
  const int threads;
  const std::size_t most_waiting;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  int alive = 0;  // threads
  bool over = false;

  void close() {
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }
  void enqueue(std::function<void()> job) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return over || jobs.size() < most_waiting; });
    jobs.push_back(std::move(job));
    changed.notify_all();
  }
  /// A thread's.
  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return over || !jobs.empty(); });
      if (over) {
        break;
      }
      const std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      changed.notify_all();
      lock.unlock();
      job();
      lock.lock();
    }
    --alive;
    changed.notify_all();
  }
};

namespace {

template <class Shared>
class Queue final : public httplib::TaskQueue {
 public:
  Queue(std::shared_ptr<Shared> shared, bool joins) : shared_(std::move(shared)), joins_(joins) {
    shared_->alive = shared_->threads;
    for (int i = 0; i < shared_->threads; ++i) {
      std::thread([shared = shared_] { shared->work(); }).detach();
    }
  }
  void enqueue(std::function<void()> job) override { shared_->enqueue(std::move(job)); }
  void shutdown() override {
    shared_->close();
    if (joins_) {
      std::unique_lock lock(shared_->mutex);
      shared_->changed.wait(lock, [this] { return shared_->alive == 0; });
    }
  }

 private:
  std::shared_ptr<Shared> shared_;
  bool joins_;
};

}  // namespace

TaskPool::TaskPool(int threads, std::size_t most_waiting) : shared_(new Shared{threads, most_waiting, {}, {}, {}}) {}

httplib::TaskQueue* TaskPool::queue(bool joins) const { return new Queue<Shared>(shared_, joins); }

void TaskPool::close() const { shared_->close(); }

bool TaskPool::ends(std::chrono::milliseconds grace) const {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, grace, [this] { return shared_->alive == 0; });
}

std::size_t TaskPool::waiting() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->jobs.size();
}

bool is_crowded(int more) {
  const int next = ::eventfd(0, EFD_CLOEXEC);
  if (next >= 0) {
    ::close(next);
  }
  return next < 0 || next + more > FD_SETSIZE;
}

}  // namespace kf::http
