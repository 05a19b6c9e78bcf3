#pragma once
// Batches that wait for the tokenizer. Any thread may encode one; the thread that needs the ids does it itself if nobody has begun.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "data/cache/encode.h"

namespace kf::cache {

class WorkQueue {
 public:
  /// A batch and, later, its ids.
  class Task {
    friend class WorkQueue;
    enum class State { waiting, running, done };
    TextBatch text;
    IdBatch ids;
    std::exception_ptr error;
    State state = State::waiting;
  };
  using Encode = std::function<IdBatch(const TextBatch&)>;

  explicit WorkQueue(Encode encode) : encode_(std::move(encode)) {}

  std::shared_ptr<Task> submit(TextBatch batch);
  /// Its ids: encodes them here when nobody has begun, else waits. Throws what encoding threw.
  IdBatch take(Task& task);
  /// Encodes what others submit until `close`.
  void help();
  void close();
  /// Threads in `help` that have nothing to do.
  std::size_t idle() const;

 private:
  void encode(Task& task);
  void drop_begun();

  Encode encode_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> waiting_;  // the first is waiting; others may have begun
  std::size_t idle_ = 0;
  bool closed_ = false;
};

}  // namespace kf::cache
