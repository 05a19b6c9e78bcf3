#pragma once
// The model of the settings once more, as formulas over whole matrices in double: slow, without cache, without fused kernels. What the
// engine's options are compared with.

#include <ATen/core/Tensor.h>

#include "config/schema/config.h"
#include "model/model.h"

namespace kf::test {

/// Logits (T, V) of one row of tokens (T), by the weights of `model`, which was built from `config`. No dropout, no experts.
at::Tensor plain_logits(const config::ModelConfig& config, Model& model, const at::Tensor& tokens);

}  // namespace kf::test
