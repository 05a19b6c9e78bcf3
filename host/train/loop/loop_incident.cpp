// Steps whose numbers went wrong, and the one that is looked at closely.

#include "train/loop/loop.h"

namespace kf {

/// Of the update that has just not been made: its batches are those of their numbers, and its weights are still there, unless later updates
/// were launched before its numbers were read.
void TrainLoop::keep_incident(const StepResult& result) {
  const std::int64_t step = state_.run.step;
  if (options_.probe != nullptr && options_.probe->step() == step) {
    options_.probe->end(result);
  }
  if (!result.not_finite || options_.incidents == nullptr || !options_.incidents->takes(step)) {
    return;
  }
  std::vector<Batch> batches;
  const std::int64_t first = parts_.stepper.first_micro(step - 1);
  for (std::int64_t micro = first; micro < parts_.stepper.first_micro(step); ++micro) {
    batches.push_back(steering_.data().batch(micro));
  }
  const bool from_another =
      !options_.resumed_from.empty() && fs::path(options_.resumed_from).parent_path() != parts_.checkpoints.options().dir;
  const std::string why = result.abort.empty() ? result.skipped : result.abort;
  options_.incidents->keep(
      {step, why, result.loss, result.grad_norm, context_.lr, state_.run.tokens, from_another ? options_.resumed_from : ""}, parts_.model,
      batches);
}

}  // namespace kf
