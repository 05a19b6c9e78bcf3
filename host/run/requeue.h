#pragma once
// run.requeue: a job of Slurm that a signal has stopped goes back into the queue.

namespace kf {

/// Where this process belongs to a job of Slurm (SLURM_JOB_ID), asks it to start that job again: `scontrol requeue JOB`, of an array its
/// task alone. Slurm then ends the job, so this comes last. Says in the log what it did, or why it could not; never throws.
void requeue() noexcept;

}  // namespace kf
