// Who looks into a step while it is made.

#include <utility>

#include "train/loop/loop.h"

namespace kf {

Stepper::Callbacks TrainLoop::callbacks(std::int64_t step) {
  Stepper::Callbacks callbacks;
  if (parts_.hooks.wants(Event::micro_end, step)) {
    callbacks.micro_end = [this] { fire(Event::micro_end); };
  }
  if (parts_.hooks.wants(Event::backward_end, step)) {
    callbacks.backward_end = [this](StepResult& result) {
      last_ = result;
      stepped_ = true;
      row_.reset();
      context_.gradients_lent = false;
      fire(Event::backward_end);
      result.skipped = std::exchange(controls_.skip_update, {});
      return std::exchange(context_.gradients_lent, false);
    };
  }
  if (logs(step + 1)) {
    callbacks.sources = static_cast<std::int64_t>(parts_.train_data.sources().size());
  }
  if (watch_.due(step + 1)) {
    callbacks.watch = &watch_;
  }
  if (histograms_.due(step + 1)) {
    histograms_.begin();
    callbacks.histograms = &histograms_;
  }
  if (options_.probe != nullptr && options_.probe->step() == step + 1) {
    options_.probe->join(callbacks, parts_.model);
  }
  if (options_.profile != nullptr && options_.profile->covers(step + 1)) {
    callbacks.micro_end = [this, then = std::move(callbacks.micro_end)] {
      options_.profile->micro_ended();
      if (then) {
        then();
      }
    };
  }
  return callbacks;
}

}  // namespace kf
