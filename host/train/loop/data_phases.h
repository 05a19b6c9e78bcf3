#pragma once
// data.phases and annealing among the phases of training.

#include <cstdint>
#include <vector>

#include "config/schema/config.h"
#include "train/loop/phase.h"

namespace kf {

/// The stretches of a run of `max_steps` steps between the starts of data.phases, or around the start of annealing, with their factors of
/// the learning rate. The mixture is the loader's matter (data/order/phases.h), because a batch is a function of its number. The first one
/// has no name, and there is none at all without data.phases.
std::vector<Phase> data_phases(const config::DataConfig& data, std::int64_t max_steps);

}  // namespace kf
