#pragma once
// The weights of a model, one at a time, from wherever they are: out of the files of a checkpoint, or out of memory.

#include <ATen/core/Tensor.h>

#include <functional>

#include "checkpoint/averages.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/reader.h"
#include "model/model.h"

namespace kf {

/// What a view shows of a weight: a tensor of `view.shape(parameter.shape)`, in the type in which it is kept.
using WeightSource = std::function<at::Tensor(const Parameter& parameter, const StoredView& view)>;

/// Reads what is asked for and no more, from pieces of any number of ranks; stacks of experts in either form. `checkpoint` outlives it.
WeightSource weights_in(const CheckpointReader& checkpoint, WeightKind kind);

/// Of tensors in memory under the names that `stored()` views have.
WeightSource weights_in(const std::vector<std::pair<std::string, at::Tensor>>& tensors);

}  // namespace kf
