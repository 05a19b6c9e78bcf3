#pragma once
// The folders of a run: run.dir and checkpoint.dir. What lies there already is locked, moved aside or left alone, never lost.

#include <optional>
#include <string>

#include "checkpoint/manager.h"
#include "config/plan/plan.h"
#include "config/schema/config.h"
#include "core/fs.h"
#include "run/run_lock.h"

namespace kf {

/// Keeps other processes out of the folders of a run. A run that has been here before is locked before anything of it is read: what
/// is decided about a checkpoint must still hold when training goes on from it.
class RunFolders {
 public:
  /// Throws Code::config where checkpoint.mirror is no second place; with run.fresh, what lies there is no earlier run that could be moved
  /// aside.
  RunFolders(const config::Config& config, const config::Plan& plan, bool fresh);

  /// Makes the folders, after everything that could be wrong with the job has been looked at; run.fresh moves earlier ones aside now, not
  /// before. `nothing_saved`: no checkpoint was there.
  void make(const CheckpointManager& checkpoints, bool nothing_saved);

  /// The run of which the copies in checkpoint.mirror were; "" without any.
  const std::string& copied_id() const { return copied_id_; }
  /// They are of the run with this id from now on.
  void sign_copies(const std::string& id) const;

  /// Removes what killed processes have left of saves, removals and files of the run; only where the folder is locked, so that they are
  /// gone.
  void tidy() const;

  /// Throws Code::checkpoint where the folder has been deleted, moved or replaced since: nothing that is written would be found again, and
  /// another process could start there. Says so where the checkpoints alone have gone.
  void check_there();

 private:
  const config::Plan& plan_;
  const fs::path mirror_;  // empty: none
  std::string copied_id_;
  bool fresh_;
  std::optional<RunLock> run_;
  std::optional<RunLock> checkpoints_;
  std::optional<RunLock> copies_;
  std::optional<FileId> checkpoints_id_;
};

/// The run's own job.toml would replace one that somebody wrote: an error.
void spare_job_file(const fs::path& dir);

/// Rows of a run whose checkpoints are not found (another checkpoint.dir, or killed before the first one) are kept beside the new ones.
void keep_old_rows(const fs::path& metrics);

}  // namespace kf
