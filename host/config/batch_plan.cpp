#include "config/batch_plan.h"

#include <algorithm>

namespace kf::config {

BatchPlan::BatchPlan(std::int64_t micros) : stages_{{0, std::max<std::int64_t>(1, micros), 0}} {}

BatchPlan::BatchPlan(const TrainConfig& train, std::int64_t ranks) : BatchPlan(train.grad_accum_steps) {
  const std::int64_t each = std::max<std::int64_t>(1, train.batch_size * ranks);
  const auto micros_of = [each](std::int64_t sequences) { return std::max<std::int64_t>(1, (sequences + each - 1) / each); };
  if (train.global_batch_size) {
    stages_.front().micros = micros_of(*train.global_batch_size);
  }
  if (train.batch_schedule.empty()) {
    return;
  }
  stages_.clear();
  for (const BatchStage& stage : train.batch_schedule) {
    const std::int64_t first = stages_.empty() ? 0 : stages_.back().first + (stage.start - stages_.back().start) * stages_.back().micros;
    stages_.push_back({stages_.empty() ? 0 : stage.start, micros_of(stage.size), first});
  }
}

const BatchPlan::Stage& BatchPlan::stage_at(std::int64_t step) const {
  const auto later = std::find_if(stages_.begin(), stages_.end(), [step](const Stage& stage) { return stage.start > step; });
  return later == stages_.begin() ? stages_.front() : *(later - 1);
}

std::int64_t BatchPlan::micros(std::int64_t step) const { return stage_at(step).micros; }

std::int64_t BatchPlan::first_micro(std::int64_t step) const {
  const Stage& stage = stage_at(step);
  return stage.first + (step - stage.start) * stage.micros;
}

std::int64_t BatchPlan::steps_for(std::int64_t micros) const {
  const auto later = std::find_if(stages_.begin(), stages_.end(), [micros](const Stage& stage) { return stage.first >= micros; });
  const Stage& stage = later == stages_.begin() ? stages_.front() : *(later - 1);
  return stage.start + (micros - stage.first + stage.micros - 1) / stage.micros;
}

}  // namespace kf::config
