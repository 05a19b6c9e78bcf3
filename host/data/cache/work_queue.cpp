#include "data/cache/work_queue.h"

namespace kf::cache {

std::shared_ptr<WorkQueue::Task> WorkQueue::submit(TextBatch batch) {
  auto task = std::make_shared<Task>();
  task->text = std::move(batch);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(task);
    drop_begun();
  }
  changed_.notify_all();
  return task;
}

IdBatch WorkQueue::take(Task& task) {
  std::unique_lock lock(mutex_);
  if (task.state == Task::State::waiting) {
    task.state = Task::State::running;
    drop_begun();
    lock.unlock();
    encode(task);
    lock.lock();
  }
  changed_.wait(lock, [&] { return task.state == Task::State::done; });
  if (task.error) {
    std::rethrow_exception(task.error);
  }
  return std::move(task.ids);
}

void WorkQueue::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [&] {
      drop_begun();
      return closed_ || !waiting_.empty();
    });
    --idle_;
    if (closed_) {
      return;
    }
    const std::shared_ptr<Task> task = waiting_.front();
    task->state = Task::State::running;
    drop_begun();
    lock.unlock();
    encode(*task);
    lock.lock();
  }
}

void WorkQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

std::size_t WorkQueue::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

void WorkQueue::encode(Task& task) {
  try {
    task.ids = encode_(task.text);
  } catch (const std::exception&) {
    task.error = std::current_exception();
  }
  task.text = {};
  {
    const std::lock_guard lock(mutex_);
    task.state = Task::State::done;
  }
  changed_.notify_all();
}

void WorkQueue::drop_begun() {
  while (!waiting_.empty() && waiting_.front()->state != Task::State::waiting) {
    waiting_.pop_front();
  }
}

}  // namespace kf::cache
