#pragma once
// Batches made ahead by threads and handed out in order.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/sequence/batch.h"

namespace kf {

/// A bounded number of batches behind the last one that was asked for are being made or wait. The threads never use torch's own: a batch is
/// copied by the one that makes it. Destruction stops the threads after the batch in hand.
class Prefetch {
 public:
  using Task = std::function<Batch()>;             // makes a batch, on any thread
  using Plan = std::function<Task(std::int64_t)>;  // what batch `index` is; called by the thread that asks for batches

  Prefetch(std::int64_t threads, std::int64_t ahead);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Batch `index`, made here and now where no thread has begun it; those behind it, below `end`, are begun, between half of `ahead` and
  /// all of it. An error of the plan or the task of a batch is thrown when that batch is asked for. An index that is not the next one drops
  /// what was made ahead.
  Batch get(std::int64_t index, std::int64_t end, const Plan& plan);
  /// Drops what was made ahead: it is not what will be read any more.
  void clear();

 private:
  struct Slot {
    std::int64_t index = 0;
    Task task;
    std::optional<Batch> batch;
    std::exception_ptr error;
    bool done = false;
  };
  using SlotPtr = std::shared_ptr<Slot>;

  void fill(std::int64_t index, std::int64_t end, const Plan& plan);
  void make(Slot& slot, std::unique_lock<std::mutex>& lock);
  void work();

  std::int64_t ahead_;
  std::deque<SlotPtr> line_;  // in order, from the next one on; of the asking thread
  std::mutex mutex_;          // of all below, and of the slots
  std::condition_variable wanted_;
  std::condition_variable made_;
  std::deque<SlotPtr> open_;  // not begun yet
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace kf
