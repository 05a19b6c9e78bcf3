#include "data/prefetch.h"

#include <utility>

namespace kf {

Prefetch::Prefetch(std::int64_t threads, std::int64_t ahead) : ahead_(ahead) {
  for (std::int64_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    open_.clear();
  }
  wanted_.notify_all();
  threads_.clear();  // joins, while all they use is alive
}

void Prefetch::clear() {
  const std::lock_guard lock(mutex_);
  open_.clear();
  line_.clear();  // a thread that has one of them in hand ends it for nobody
}

void Prefetch::fill(std::int64_t index, std::int64_t end, const Plan& plan) {
  for (std::int64_t next = line_.empty() ? index : line_.back()->index + 1; next <= index + ahead_ && (next < end || next == index);
       ++next) {
    auto slot = std::make_shared<Slot>();
    slot->index = next;
    try {
      slot->task = plan(next);
    } catch (const std::exception&) {
      slot->error = std::current_exception();
      slot->done = true;
    }
    line_.push_back(slot);
    if (!slot->done) {
      const std::lock_guard lock(mutex_);
      open_.push_back(std::move(slot));
      wanted_.notify_one();
    }
  }
}

Batch Prefetch::get(std::int64_t index, std::int64_t end, const Plan& plan) {
  if (!line_.empty() && line_.front()->index != index) {
    clear();
  }
  fill(index, end, plan);
  const SlotPtr slot = line_.front();
  line_.pop_front();
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] { return slot->done; });
  if (slot->error) {
    std::rethrow_exception(slot->error);
  }
  return std::move(*slot->batch);
}

void Prefetch::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this] { return stop_ || !open_.empty(); });
    if (stop_) {
      return;
    }
    const SlotPtr slot = std::move(open_.front());
    open_.pop_front();
    lock.unlock();
    std::optional<Batch> batch;
    std::exception_ptr error;
    try {
      batch = slot->task();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    slot->task = nullptr;  // and what it holds
    lock.lock();
    slot->batch = std::move(batch);
    slot->error = error;
    slot->done = true;
    made_.notify_all();
  }
}

}  // namespace kf
