#pragma once
// When a run saves, and what it keeps.

#include <cstdint>
#include <functional>

#include "checkpoint/retention.h"
#include "registry/registries.h"

namespace kf {

/// Whether `step` is one of checkpoint.dyn_ckpt_window's or checkpoint.keep's, which are kept for ever.
std::function<bool(std::int64_t step)> milestone_rule(const config::Config& config, const Registries& registries);

/// Inside the window its strategy decides, outside checkpoint.strategy does; what checkpoint.keep names is saved, too.
std::function<bool(std::int64_t step)> save_rule(const config::Config& config, const Registries& registries);

/// Which checkpoints stay, by [checkpoint]; without folders.
CheckpointOptions retention_of(const config::Config& config, const Registries& registries);

}  // namespace kf
