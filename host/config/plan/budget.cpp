#include "config/plan/budget.h"

#include <algorithm>
#include <limits>

#include "config/plan/batch_plan.h"

namespace kf::config {
namespace {

/// a * b, or the largest number when that would overflow.
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}

}  // namespace

PerAxis degrees_of(const DistributedConfig& d) { return {d.pp, d.dp_replicate, d.dp_shard, d.cp, d.ep, d.tp}; }

std::int64_t data_ranks(const DistributedConfig& d, std::int64_t world) {
  const PerAxis degrees = degrees_of(d).on_world(world);
  return times(times(degrees.dp_replicate, degrees.dp_shard), degrees.ep);
}

std::int64_t tokens_per_step(const Config& config, std::int64_t ranks) {
  const TrainConfig& t = config.train;
  return times(times(BatchPlan(t, ranks).sequences(0), t.seq_len), ranks);
}

std::int64_t steps_for_tokens(std::int64_t tokens, std::int64_t per_step) {
  return std::max<std::int64_t>(1, tokens / per_step + (tokens % per_step != 0 ? 1 : 0));
}

std::int64_t effective_max_steps(const Config& config, std::int64_t world) {
  const TrainConfig& t = config.train;
  if (!t.max_tokens) {
    return t.max_steps;
  }
  const std::int64_t ranks = data_ranks(config.distributed, world);
  const BatchPlan plan(t, ranks);
  return plan.steps_for_pieces(steps_for_tokens(*t.max_tokens, times(times(plan.piece(), t.seq_len), ranks)));
}

std::int64_t schedule_length(const SchedulerConfig& scheduler, std::int64_t max_steps) { return scheduler.total_steps.value_or(max_steps); }

std::int64_t ranks_for_budget(const Config& config) {
  const TrainConfig& t = config.train;
  const std::int64_t near = *t.max_tokens / times(t.max_steps, tokens_per_step(config, 1));
  for (std::int64_t ranks = std::max<std::int64_t>(1, near); ranks <= near + 1; ++ranks) {
    if (steps_for_tokens(*t.max_tokens, tokens_per_step(config, ranks)) == t.max_steps) {
      return ranks;
    }
  }
  return 0;
}

}  // namespace kf::config
