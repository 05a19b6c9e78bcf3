#pragma once
// A worker that comes and goes (kf-host --workers N), among the others.

#include <functional>
#include <memory>

#include "checkpoint/state.h"
#include "config/tree/node.h"
#include "parallel/meeting.h"
#include "run/run_context.h"
#include "run/trainee.h"

namespace kf {

/// Waits for the other workers, and takes their state where they are ahead: trainee and `state` are those that training begins with. The
/// exchanges go over the meeting, which the trainee must not outlive. Null where the processes are no such worker. Throws Code::config for
/// another job than that of the others, and Code::communication.
std::unique_ptr<Meeting> meet_other_workers(const RunContext& run, Trainee& trainee, CheckpointState& state);

/// Gives those that came back what hooks and other parts of this worker keep, and what hooks asked for (LoopOptions::hand_on).
void hand_on(Trainee& trainee, const std::function<config::Table()>& kept);

/// The place of this rank among all that draw apart, of all workers.
Share drawing_share(const RunContext& run);

}  // namespace kf
