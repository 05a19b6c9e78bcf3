#pragma once
// The phases of a run that only counts steps.

#include "train/loop/phase.h"

namespace kf::test {

/// The factor of the learning rate in the update after `step` completed ones; steps rise from call to call.
inline double factor_at(Phases& phases, std::int64_t step) {
  HookContext context;
  context.state.step = step;
  while (phases.over(context)) {
    phases.advance(step);
  }
  return phases.lr_scale(step);
}

}  // namespace kf::test
