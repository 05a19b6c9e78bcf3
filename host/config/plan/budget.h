#pragma once
// Steps and tokens: how many of the one the other makes.

#include "config/schema/config.h"
#include "parallel/mesh/mesh.h"

namespace kf::config {

/// Steps of the learning-rate schedule: scheduler.total_steps, or those of the run.
std::int64_t schedule_length(const SchedulerConfig& scheduler, std::int64_t max_steps);

/// The degrees as they are written: dp_shard may be -1 (PerAxis::on_world).
PerAxis degrees_of(const DistributedConfig& distributed);

/// Ranks that see different data, of `world`; at least 1, also for degrees that do not fit: Mesh::readers.
std::int64_t data_ranks(const DistributedConfig& distributed, std::int64_t world);

/// Tokens of the first update on `ranks` data ranks: its sequences * seq_len.
std::int64_t tokens_per_step(const Config& config, std::int64_t ranks);

/// ceil(tokens / per_step), at least 1.
std::int64_t steps_for_tokens(std::int64_t tokens, std::int64_t per_step);

/// max_steps, or what max_tokens makes of it on `world` ranks.
std::int64_t effective_max_steps(const Config& config, std::int64_t world);

/// The number of data ranks at which max_tokens and max_steps agree, or 0 when there is none.
std::int64_t ranks_for_budget(const Config& config);

}  // namespace kf::config
