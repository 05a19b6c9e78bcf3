#include "data/loader/prefetch.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/out_of_memory.h"
#include "core/trace.h"

namespace kf {
namespace {

constexpr std::chrono::microseconds kWorthAnother{300};  // a batch that takes longer is worth waking another thread for the next

/// This thread never takes a core from the one that wakes it: there are batches ahead, and the step is what is waited for.
void be_patient() {
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);  // where it is refused, all works as well
}

}  // namespace

Prefetch::Prefetch(std::int64_t threads, std::int64_t ahead) : ahead_(ahead) {
  threads_.reserve(static_cast<std::size_t>(threads));
  try {
    for (std::int64_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { work(); });
    }
  } catch (const std::exception& error) {  // what there is does the work; left as they are they would be waited for without end
    KF_CHECK(!threads_.empty(), Code::machine, "{}", failure_text(error));
    log::warn("data.num_workers = {}: the system gives {} threads ({})", threads, threads_.size(), error.what());
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
    }
  }
  wanted_.notify_one();  // one thread makes small batches faster than several wake up; it calls the others when they are large
}

Batch Prefetch::get(std::int64_t index, std::int64_t end, const Plan& plan) {
  if (!line_.empty() && line_.front()->index != index) {
    clear();
  }
  // Several at once when half of them are gone: every wake-up of a thread can cost this one its core.
  if (static_cast<std::int64_t>(line_.size()) <= ahead_ / 2) {
    fill(index, end, plan);
  }
  const SlotPtr slot = line_.front();
  line_.pop_front();
  std::unique_lock lock(mutex_);
  if (const auto open = std::find(open_.begin(), open_.end(), slot); open != open_.end()) {
    open_.erase(open);  // on a busy machine a thread may be long in coming
    make(*slot, lock);
    wanted_.notify_one();
  }
  made_.wait(lock, [&] { return slot->done; });
  if (slot->error) {
    std::rethrow_exception(slot->error);
  }
  return std::move(*slot->batch);
}

/// With the lock held before and after, not meanwhile.
void Prefetch::make(Slot& slot, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::optional<Batch> batch;
  std::exception_ptr error;
  try {
    const TraceRange range(TraceKind::phase, "making a batch");
    batch = slot.task();
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  slot.task = nullptr;  // and what it holds
  lock.lock();
  slot.batch = std::move(batch);
  slot.error = error;
  slot.done = true;
}

void Prefetch::work() {
  be_patient();
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this] { return stop_ || !open_.empty(); });
    if (stop_) {
      return;
    }
    const SlotPtr slot = std::move(open_.front());
    open_.pop_front();
    const auto begin = std::chrono::steady_clock::now();
    make(*slot, lock);
    made_.notify_all();
    if (!open_.empty() && std::chrono::steady_clock::now() - begin > kWorthAnother) {
      wanted_.notify_one();
    }
  }
}

}  // namespace kf
