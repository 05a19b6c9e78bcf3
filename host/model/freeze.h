#pragma once
// Which weights train.

#include "config/schema/config.h"
#include "model/model.h"

namespace kf {

/// Marks the weights outside train.trainable and inside train.frozen as not trainable: no gradient, no optimizer state, no part in the
/// gradient norm. Adapters train although train.trainable
/// does not name them. Every name by which the model knows a weight counts. Throws Code::config for a pattern that matches nothing, and
/// when no weight is left.
void freeze(Model& model, const config::TrainConfig& train);

}  // namespace kf
