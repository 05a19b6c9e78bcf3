#pragma once
// The beginning of a sink without a run around it.

#include <cstdint>

#include "config/plan/plan.h"
#include "metrics/sink.h"

namespace kf::test {

/// Of a run of `max_steps` that goes on behind `completed` steps.
inline void begin_at(Sink& sink, std::int64_t completed, std::int64_t max_steps = 0) {
  const config::Config config;
  config::Plan plan;
  plan.max_steps = max_steps;
  sink.begin({config, plan, "20261128-2147-5f3a91c2", "", 0, completed});
}

}  // namespace kf::test
