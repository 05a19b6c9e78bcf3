#pragma once

#include <ATen/core/Tensor.h>

#include "data/sequence/batch.h"

namespace kf {

/// A batch on `device`.
Batch to_device(const Batch& batch, at::Device device);

}  // namespace kf
