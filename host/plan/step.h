#pragma once
// How long a step of a layout takes, and where the time goes.

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/plan/rank_memory.h"
#include "plan/compute.h"
#include "plan/gpu.h"
#include "plan/traffic.h"

namespace kf::plan {

/// Share of its time in which a machine does what the formulas count; the rest are kernels that begin late, ranks that wait for a slower
/// one, clocks that fall under load. One number for all jobs, the median of the published figures in docs/parallelism.md.
inline constexpr double kSteady = 0.85;

/// The time of a step on the rank that is busiest, in seconds.
struct StepTime {
  double total = 0;
  double computing = 0;  // forward and backward of all micro-batches
  double again = 0;      // of it what recomputation does again
  double waiting = 0;    // for messages of a micro-batch: tensor, context and expert parallelism, and weights that come too late
  double bubble = 0;     // for other stages
  double sharing = 0;    // for gradients and weights once a step
  double updating = 0;
};

/// A plan for one layout.
struct StepPlan {
  StepTime time;
  double tokens = 0;  // of a step
  double tokens_per_second = 0;
  double mfu = 0;           // model FLOPs (flops_per_token) of a step over what all accelerators could do meanwhile
  double bubble_share = 0;  // of the pipeline's time in which its ranks wait for each other, on average
};

/// Plans steps of one layout, whose micro-batches may differ from plan to plan. Stages of the same composition are planned once.
///
/// A pipeline is gone through action by action (config/plan/pipeline.h) with the times of its pieces. Messages along tp and ep, and between
/// stages, are waited for; those of a ring run beside its attention; with distributed.prefetch weights are gathered beside the
/// computation of a micro-batch and gradients are summed beside the last backward.
class StepPlanner {
 public:
  /// All live longer than this.
  StepPlanner(const Weights& weights, const Layout& layout, const Gpu& gpu) : weights_(weights), layout_(layout), gpu_(gpu) {}

  /// `config` is of this layout. A step that is sure to take longer than `worth` seconds is not planned to its end: `time.total` is then a
  /// time that it takes at least, and the rest is not all there.
  StepPlan plan(const config::Config& config, double worth = std::numeric_limits<double>::infinity());

 private:
  struct StageTime;
  StageTime stage_time(const config::Config& config, const Compute& compute, std::int64_t stage);
  const Reaches& reaches(std::int64_t stage);

  const Weights& weights_;
  const Layout& layout_;
  const Gpu& gpu_;
  std::map<std::pair<std::int64_t, bool>, Reaches> reaches_;  // by place of the stage's first rank on its machine; whether it is the last
};

StepPlan plan_step(const config::Config& config, const Weights& weights, const Layout& layout, const Gpu& gpu);

}  // namespace kf::plan
