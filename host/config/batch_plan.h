#pragma once
// How many sequences an update takes, and where its micro-batches stand in the data: pure functions of the step.

#include <cstdint>
#include <vector>

#include "config/config.h"

namespace kf::config {

/// Micro-batches are numbered from the start of the run, on each rank alike; an update takes the next `micros(step)` of them.
class BatchPlan {
 public:
  /// The same number of micro-batches in every update; at least 1.
  BatchPlan(std::int64_t micros);  // a plain number is a plan
  /// By train.batch_schedule, train.global_batch_size or train.grad_accum_steps, on `ranks` data ranks. Sizes that are no multiple of
  /// batch_size * ranks are rounded up (the rules of the job refuse them).
  BatchPlan(const TrainConfig& train, std::int64_t ranks);

  /// Micro-batches of update `step` + 1.
  std::int64_t micros(std::int64_t step) const;
  /// Number of its first micro-batch: the sum over all updates before.
  std::int64_t first_micro(std::int64_t step) const;
  /// Updates that `micros` micro-batches make, rounded up.
  std::int64_t steps_for(std::int64_t micros) const;
  bool changes() const { return stages_.size() > 1; }

 private:
  struct Stage {
    std::int64_t start = 0;  // step
    std::int64_t micros = 1;
    std::int64_t first = 0;  // micro-batch at `start`
  };
  const Stage& stage_at(std::int64_t step) const;

  std::vector<Stage> stages_;
};

}  // namespace kf::config
