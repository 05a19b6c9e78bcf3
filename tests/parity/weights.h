#pragma once
// A model with the weights of a case.

#include <ATen/core/Tensor.h>

#include <memory>

#include "config/config.h"
#include "model/model.h"
#include "parity/compare.h"
#include "registry/registries.h"

namespace kf::parity {

/// Builds and materializes the model of `config` in `compute` type and fills it with the tensors `weights.*`. Names that the model has
/// and the case lacks, or the reverse, are a failure of `out`.
std::shared_ptr<Model> model_of(const Case& test, const config::Config& config, const Registries& registries, at::ScalarType compute,
                                Comparison& out);

/// The gradient, zeros where nothing flowed.
at::Tensor gradient_of(const Parameter& parameter);

}  // namespace kf::parity
