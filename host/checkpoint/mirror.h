#pragma once
// Copies of a run's checkpoints in a second folder, best on another file system.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "checkpoint/retention.h"
#include "core/fs.h"

namespace kf {

/// Copies a whole checkpoint into `dir`, under its own name: every byte is compared with the digests in its state.json as it is read, and
/// again as it was written. It appears there whole or not at all. One that is there already, whole and the same, is left as it is. Throws
/// Code::checkpoint.
void copy_checkpoint(const fs::path& checkpoint, const fs::path& dir);

/// A thread that copies behind the run: what is slow or gone there costs no step. What fails is a warning; the first copy is never touched.
class Mirror {
 public:
  /// `options`: those of the run; options.mirror is the folder.
  explicit Mirror(CheckpointOptions options);
  /// Waits until what was added is copied.
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  /// Copies this one when its turn comes; of step_N folders that wait, the newest alone and milestones. Old ones go there as the options
  /// say, which may ask a script: for the training thread.
  void add(const fs::path& checkpoint);
  /// Steps whose folders are still to be copied, or are being copied.
  std::vector<std::int64_t> needed() const;
  /// Returns when nothing waits any more.
  void wait();

 private:
  struct Task {
    fs::path checkpoint;
    std::optional<std::int64_t> step = {};    // nothing for a named one
    std::vector<std::int64_t> outdated = {};  // steps that go once it is there
  };

  void work();
  void copy(const Task& task) noexcept;
  void look();

  const CheckpointOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  std::optional<Task> current_;
  std::vector<SavedStep> there_;  // as the thread has last seen the folder
  bool over_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace kf
