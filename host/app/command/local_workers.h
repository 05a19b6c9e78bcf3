#pragma once
// Starts all workers of a run that come and go on this machine.

#include <string>
#include <vector>

#include "app/line/arguments.h"

namespace kf {

/// Starts this program once a worker with `args`, as a launch of `processes`, and waits for all. What the first one writes appears as it
/// is, of the others behind
/// "[worker K]" (`leader_only`: not at all, but for one that fails). Signals go to all. Gives the exit status: 0 where a worker came to its
/// end and none was stopped, whatever has become of others; else kStoppedStatus where one was, or that of the first one that failed.
int run_local_workers(const WorkerOptions& workers, std::int64_t processes, bool leader_only, const std::vector<std::string>& args);

/// This process, and what it starts, is the one worker of `workers` (--worker).
void be_worker(const WorkerOptions& workers);

}  // namespace kf
