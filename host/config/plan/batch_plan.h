#pragma once
// How many sequences an update takes, and where its micro-batches stand in the data: pure functions of the step.

#include <cstdint>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// Micro-batches are numbered from the start of the run, on each rank alike; an update takes the next `micros(step)` of them, each of
/// batch_size sequences a rank, the last one of fewer where the update's size is no multiple. Data are counted in pieces: the largest
/// number of sequences that divides every micro-batch (batch_size itself, where all sizes are multiples of it).
class BatchPlan {
 public:
  /// The same number of micro-batches in every update; at least 1.
  BatchPlan(std::int64_t micros);  // a plain number is a plan
  /// By train.batch_schedule, train.global_batch_size or train.grad_accum_steps, on `ranks` data ranks. Sizes that are no multiple of
  /// `ranks` are rounded up (the rules of the job refuse them).
  BatchPlan(const TrainConfig& train, std::int64_t ranks);

  /// Micro-batches of update `step` + 1.
  std::int64_t micros(std::int64_t step) const;
  /// Number of its first micro-batch: the sum over all updates before.
  std::int64_t first_micro(std::int64_t step) const;
  /// Updates that `micros` micro-batches make, rounded up.
  std::int64_t steps_for(std::int64_t micros) const;
  bool changes() const { return stages_.size() > 1; }

  /// Sequences of a rank in a piece.
  std::int64_t piece() const { return piece_; }
  std::int64_t pieces_per_micro() const { return per_micro_; }
  /// Whether some update ends with a smaller micro-batch.
  bool uneven() const { return per_micro_ > 1; }
  /// Sequences of a rank in update `step` + 1.
  std::int64_t sequences(std::int64_t step) const;
  /// Number of the first piece of a micro-batch; of the next one it is the end.
  std::int64_t first_piece(std::int64_t micro) const;
  /// Micro-batches that the first `pieces` pieces fill.
  std::int64_t micros_within(std::int64_t pieces) const;
  /// Updates that `pieces` pieces make, rounded up.
  std::int64_t steps_for_pieces(std::int64_t pieces) const;

 private:
  struct Stage {
    std::int64_t start = 0;  // step
    std::int64_t micros = 1;
    std::int64_t first = 0;  // micro-batch at `start`
    std::int64_t pieces = 1;
    std::int64_t first_piece = 0;  // at `start`
  };
  /// The last stage with `member` at most `value`.
  const Stage& stage_at(std::int64_t Stage::*member, std::int64_t value) const;

  std::int64_t piece_ = 1;
  std::int64_t per_micro_ = 1;
  std::vector<Stage> stages_;
};

}  // namespace kf::config
