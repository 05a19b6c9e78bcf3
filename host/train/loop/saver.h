#pragma once
// The saves of a run: what is copied and written, by whom, and what becomes of it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "checkpoint/host_copies.h"
#include "checkpoint/manager.h"
#include "checkpoint/mirror.h"
#include "checkpoint/writer.h"
#include "core/error.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "parallel/world.h"

namespace kf {

struct SaverOptions {
  bool behind = false;          // checkpoint.async_mode: a thread writes, from a copy
  bool keeps_buffers = false;   // async_with_pinned_mem
  bool stops_on_error = true;   // checkpoint.on_error
  double interval_minutes = 0;  // checkpoint.interval_minutes
};

/// At most one save is under way, from `prepare` to `end`. All ranks call everything in the same order.
///
/// A save behind the training has the copies that `begin` makes and the communicator World::files() for itself; whatever else uses that
/// communicator ends first (`end`). The destructor waits for the thread and logs what failed.
class Saver {
 public:
  struct Saved {
    std::int64_t step = 0;
    std::string name;  // "" for step_N
    fs::path path;
  };

  Saver(SaverOptions options, CheckpointManager& checkpoints, CheckpointWriter& writer, const World& world);
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// A save of this step, step_N or `name`, comes; `end` must have been called for the one before. `check` may throw on some ranks what
  /// keeps it from being made: that is a failure on all, as in `end`, and false where the run goes on after it. May be empty.
  bool prepare(std::int64_t step, const std::string& name, const std::function<void()>& check);
  /// Begins to save `state`. Behind the training it returns when everything is copied.
  void begin(const CheckpointState& state, Model& model, Optimizer& optimizer);
  bool is_under_way() const { return flight_.valid(); }
  /// Whether the one that is under way has come to its end on all ranks: `end` will not wait. True where there is none.
  bool is_over() const;
  /// Waits for the end of the one that is under way; nothing where there is none, or where it failed and that is a warning. Throws what
  /// made it fail, with its step, where that ends the run: with checkpoint.on_error = "stop", and whatever is no matter of files.
  std::optional<Saved> end();

  /// Has a checkpoint that is whole copied to checkpoint.mirror, behind the run; nothing where there is none, and on other ranks than the
  /// first.
  void copy(const fs::path& checkpoint);
  /// The same for the checkpoint that the run goes on from, where it is its own: the process before may not have come to it.
  void catch_up(const fs::path& checkpoint);
  /// Returns when all copies have ended, and what had to stay for them has gone.
  void await_copies();

  bool behind() const { return options_.behind; }
  /// The step of the newest step_N that this process has saved, or begun to; -1 for none.
  std::int64_t step() const { return step_; }
  /// The run went back to a checkpoint of this step.
  void roll_back(std::int64_t step) { step_ = step; }
  /// How long the last one took until it was durable, in seconds; 0 where there was none.
  double seconds() const { return seconds_; }
  /// Whether checkpoint.interval_minutes are over since the last step_N was begun. By this rank's own clock: the leader's counts.
  bool is_due_by_clock() const;

 private:
  struct Written {
    fs::path path;
    double seconds = 0;
  };

  StagedSave stage(const CheckpointState& state, Model& model, Optimizer& optimizer);
  void judge(const Error& e);
  std::string what() const;

  SaverOptions options_;
  CheckpointManager& checkpoints_;
  CheckpointWriter& writer_;
  World world_;
  HostCopies copies_;
  std::optional<Mirror> mirror_;                 // the leader's
  std::chrono::steady_clock::time_point begun_;  // the last step_N
  std::chrono::steady_clock::time_point began_;  // the last of any name
  std::int64_t step_ = -1;
  double seconds_ = 0;
  std::int64_t under_way_ = -1;  // its step
  std::string name_;             // its name
  std::future<Written> flight_;  // last: its destructor waits for the thread, which uses the rest
};

}  // namespace kf
