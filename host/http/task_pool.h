#pragma once
// Threads that answer the requests of a server of cpp-httplib, and what its use of select() asks for.

#include <chrono>
#include <cstddef>
#include <memory>

namespace httplib {
class TaskQueue;
}

namespace kf::http {

/// The library's own queue has no bound: whoever opens connections faster than they are answered fills the process with open files.
class TaskPool {
 public:
  /// Connections that no thread has taken yet are `most_waiting` at most; further ones wait to be accepted.
  TaskPool(int threads, std::size_t most_waiting);

  /// For Server::new_task_queue, which owns it: begins the threads. `joins`: the end of the server waits for them.
  httplib::TaskQueue* queue(bool joins) const;
  /// No thread begins with anything more.
  void close() const;
  /// Whether all threads have ended, within the grace.
  bool ends(std::chrono::milliseconds grace) const;
  std::size_t waiting() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // lives as long as one of the threads
};

/// Whether `more` further files would have a descriptor that select() does not know: to wait for one of those writes behind its set.
bool is_crowded(int more);

}  // namespace kf::http
