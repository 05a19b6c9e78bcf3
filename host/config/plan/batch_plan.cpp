#include "config/plan/batch_plan.h"

#include <algorithm>
#include <numeric>

namespace kf::config {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return value / unit + (value % unit != 0 ? 1 : 0); }

}  // namespace

BatchPlan::BatchPlan(std::int64_t micros) {
  Stage stage;
  stage.micros = stage.pieces = std::max<std::int64_t>(1, micros);
  stages_.push_back(stage);
}

BatchPlan::BatchPlan(const TrainConfig& train, std::int64_t ranks) : BatchPlan(train.grad_accum_steps) {
  const std::int64_t batch_size = std::max<std::int64_t>(1, train.batch_size);
  piece_ = batch_size;
  if (!train.global_batch_size && train.batch_schedule.empty()) {
    return;
  }
  List<BatchStage> sizes = train.batch_schedule;
  if (sizes.empty()) {
    sizes.push_back({0, *train.global_batch_size});
  }
  for (BatchStage& stage : sizes) {
    stage.size = std::max<std::int64_t>(1, rounded_up(stage.size, std::max<std::int64_t>(1, ranks)));  // of a rank, from here on
    piece_ = std::gcd(piece_, stage.size);
  }
  per_micro_ = batch_size / piece_;
  stages_.clear();
  for (const BatchStage& size : sizes) {
    Stage next;
    next.micros = rounded_up(size.size, batch_size);
    next.pieces = size.size / piece_;
    if (!stages_.empty()) {
      const Stage& last = stages_.back();
      next.start = size.start;
      next.first = last.first + (size.start - last.start) * last.micros;
      next.first_piece = last.first_piece + (size.start - last.start) * last.pieces;
    }
    stages_.push_back(next);
  }
}

const BatchPlan::Stage& BatchPlan::stage_at(std::int64_t Stage::*member, std::int64_t value) const {
  const auto later = std::find_if(stages_.begin(), stages_.end(), [&](const Stage& stage) { return stage.*member > value; });
  return later == stages_.begin() ? stages_.front() : *(later - 1);
}

std::int64_t BatchPlan::micros(std::int64_t step) const { return stage_at(&Stage::start, step).micros; }

std::int64_t BatchPlan::first_micro(std::int64_t step) const {
  const Stage& stage = stage_at(&Stage::start, step);
  return stage.first + (step - stage.start) * stage.micros;
}

std::int64_t BatchPlan::steps_for(std::int64_t micros) const {
  const Stage& stage = stage_at(&Stage::first, micros - 1);
  return stage.start + rounded_up(micros - stage.first, stage.micros);
}

std::int64_t BatchPlan::sequences(std::int64_t step) const { return stage_at(&Stage::start, step).pieces * piece_; }

std::int64_t BatchPlan::first_piece(std::int64_t micro) const {
  const Stage& stage = stage_at(&Stage::first, micro);
  const std::int64_t past = micro - stage.first;
  return stage.first_piece + past / stage.micros * stage.pieces + past % stage.micros * per_micro_;
}

std::int64_t BatchPlan::micros_within(std::int64_t pieces) const {
  const Stage& stage = stage_at(&Stage::first_piece, pieces);
  const std::int64_t past = pieces - stage.first_piece;
  return stage.first + past / stage.pieces * stage.micros + past % stage.pieces / per_micro_;
}

std::int64_t BatchPlan::steps_for_pieces(std::int64_t pieces) const {
  const Stage& stage = stage_at(&Stage::first_piece, pieces - 1);
  return stage.start + rounded_up(pieces - stage.first_piece, stage.pieces);
}

}  // namespace kf::config
