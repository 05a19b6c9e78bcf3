#pragma once
// Adding up what micro-batches leave.

#include <ATen/core/Tensor.h>

#include "train/step/engine.h"

namespace kf {

/// What a micro-batch, or a piece of a model, has added to the loss; `zero` is 0-dim fp32 on its device, the same
/// one in each call, and never written: sums may be it, or a share itself.
void add(StepSums& sums, const Minimised& loss, const at::Tensor& zero);

}  // namespace kf
