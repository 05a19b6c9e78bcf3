#pragma once
// This process among those that were started together.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "parallel/launched.h"
#include "parallel/worker_place.h"

namespace kf {

class Group;

class Launch {
 public:
  /// One process alone.
  Launch() = default;
  /// By the variables of whoever started this process (`kf-host --nproc N`, torchrun, srun, mpirun; parallel/launched.h); without them one
  /// process. `where` (HOST:PORT, file:PATH): where all meet; empty for what the variables say. Throws Code::communication where several
  /// processes do not know where they meet, and Code::config for a `where` of one process.
  static Launch from_environment(const std::string& where = {});

  /// What this process starts is no rank, whichever launcher it would look for.
  void hide_from_children() const;
  /// The processes of this machine share its physical cores, unless OMP_NUM_THREADS or the launcher says otherwise.
  void share_cores() const;

  std::int64_t rank() const { return of_.rank; }
  std::int64_t world() const { return of_.world; }
  bool leads() const { return rank() == 0; }
  /// The worker that these processes are; nothing where all that train together were started together.
  const std::optional<WorkerPlace>& worker() const { return worker_; }
  /// The processes of all workers: those that the job's settings are about.
  std::int64_t job_world() const { return world() * (worker_ ? worker_->workers : 1); }
  const LaunchedRank& launched() const { return of_; }

  /// All processes. The first call joins them and waits up to `timeout` for those that have not come; so does every later wait for another
  /// rank, in any run of this process. Throws Code::communication naming who is missing.
  std::shared_ptr<Group> all(std::chrono::milliseconds timeout);

 private:
  struct Joined {
    std::shared_ptr<Group> all;
  };
  LaunchedRank of_;
  std::optional<WorkerPlace> worker_;
  std::shared_ptr<Joined> joined_ = std::make_shared<Joined>();  // copies are the same launch
};

}  // namespace kf
