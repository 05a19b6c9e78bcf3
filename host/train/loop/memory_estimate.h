#pragma once
// How many bytes a job takes, before it takes them.

#include <string>
#include <utility>
#include <vector>

#include "config/plan/rank_memory.h"
#include "config/schema/config.h"
#include "model/parameter.h"

namespace kf {

using MemoryEstimate = plan::MemoryEstimate;

/// A step of training on the fullest of `world` ranks (plan/memory.h). `parameters` need no tensors yet: the estimate comes before the
/// first allocation. Throws Code::config where [distributed] does not make up the world.
MemoryEstimate training_memory(const config::Config& config, const ParameterList& parameters, std::int64_t world = 1);

/// Of those of `world` ranks that are on one machine, together.
MemoryEstimate machine_memory(const config::Config& config, const ParameterList& parameters, std::int64_t world,
                              const plan::RankRange& here);

/// A model that is read only, in fp32: `rows` texts together, `positions` of each kept by generation (0: an evaluation of `rows` sequences
/// of train.seq_len).
MemoryEstimate inference_memory(const config::Config& config, const ParameterList& parameters, double rows, double positions);

/// Changes of settings and the total with each.
using Savers = std::vector<std::pair<std::string, double>>;

/// What settings would make of that: "train.activation_checkpointing = \"full\"" and the total with it, those that help by 5 % or more, the
/// strongest first.
Savers memory_savers(const config::Config& config, const ParameterList& parameters, std::int64_t world = 1,
                     const plan::RankRange& here = {});

}  // namespace kf
