#pragma once
// The loss on held-out data.

#include <cstdint>

#include "data/loader.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "train/hook.h"

namespace kf {

/// Cross entropy alone, summed over all counted tokens of the first `steps` batches (of all, where negative) and divided by their number; perplexity is its exp.
/// Runs in evaluation mode with the optimizer's averages swapped in; training goes on afterwards as if nothing had happened.
/// With `in_chunks` the logits are made and dropped a piece at a time, where the model has a head. Throws Code::data when no label counts.
EvalResult evaluate(Model& model, Optimizer& optimizer, Loader& loader, std::int64_t steps, at::Device device, std::int64_t at_step,
                    bool in_chunks = false);

}  // namespace kf
