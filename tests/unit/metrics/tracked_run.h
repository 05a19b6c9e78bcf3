#pragma once
// A run of trackers without a run around them.

#include <cmath>
#include <string>

#include "config/plan/plan.h"
#include "core/fs.h"
#include "metrics/histogram.h"
#include "metrics/sink.h"

namespace kf::test {

/// What a run is to its sinks.
struct TrackedRun {
  explicit TrackedRun(const fs::path& dir) {
    plan.name = "a run";
    plan.dir = dir;
    plan.tensorboard_dir = dir / config.metrics.tensorboard_dir;
  }
  void begin(Sink& sink, std::int64_t completed) const {
    sink.begin({config, plan, "20261128-2147-5f3a91c2", "[optimizer]\nlr = 0.25\nname = \"adamw\"\n", 0, completed});
  }

  config::Config config;
  config::Plan plan;
};

inline StepRow tracked_row(std::int64_t step, double loss) {
  StepRow row;
  row.step = step;
  row.loss = loss;
  row.time = 1.8e9 + static_cast<double>(step);
  row.extra = {{"watch/grads", 1.0 / static_cast<double>(step)}, {"watch/grads/layers.0", 2}};
  return row;
}

/// Steps from `first` to `last`: a row each, a text and a histogram at even ones.
inline void tell_steps(Sink& sink, std::int64_t first, std::int64_t last, double loss) {
  for (std::int64_t step = first; step <= last; ++step) {
    if (step % 2 == 0) {
      sink.text({step, "samples/1", "# step\n" + std::to_string(step)});
      Histogram histogram{"weights/w", -1, 2, 3, 4, std::vector<double>(kBuckets)};
      histogram.counts[kBucketsASign] = 5;
      histogram.counts[kBucketsASign + 9] = 7;
      sink.histograms({step, {histogram}});
    }
    sink.row(tracked_row(step, loss));
    sink.step_over(step);
  }
}

/// Runs to 6 with a save at 4, dies, goes on from 4 to 8 with another loss, goes back to 6, and does 7 and 8 with a third one.
template <class Tracker>
void tell_a_hard_life(const TrackedRun& run) {
  {
    Tracker sink;
    run.begin(sink, 0);
    tell_steps(sink, 1, 4, 1);
    sink.before_save();
    CHECK(sink.state().is_null());
    tell_steps(sink, 5, 6, 1);
  }
  Tracker sink;
  run.begin(sink, 4);
  tell_steps(sink, 5, 8, 2);
  sink.rewind(6);
  tell_steps(sink, 7, 7, 3);
  sink.eval({.step = 8, .loss = 0.5, .perplexity = 1.6, .tokens = 64});
  tell_steps(sink, 8, 8, 3);
  sink.before_save();
  sink.saved(8, "step_8");
  sink.end({.status = "complete", .step = 8});
}

/// What is left of it.
inline double loss_of_hard_life(std::int64_t step) { return step <= 4 ? 1 : step <= 6 ? 2 : 3; }

}  // namespace kf::test
