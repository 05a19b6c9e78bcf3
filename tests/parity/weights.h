#pragma once
// A model with the weights of a case.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "config/schema/config.h"
#include "model/model.h"
#include "parity/compare.h"
#include "registry/registries.h"

namespace kf::parity {

/// Builds and materializes the model of `config` in `compute` type and fills it with the tensors `weights.*`. Names that the model has
/// and the case lacks, or the reverse, are a failure of `out`.
std::shared_ptr<Model> model_of(const Case& test, const config::Config& config, const Registries& registries, at::ScalarType compute,
                                Comparison& out);

/// The names that begin with `prefix` and under which the case holds the tensor `name` of the model's state dict: its own, and those of
/// what shares it (a tied head stands as output_head.proj.weight, as token_embedding.embedding.weight, or as both).
std::vector<std::string> names_in(const Case& test, Model& model, const std::string& prefix, const std::string& name);
/// The tensor under the first of these names; those under others must be equal to it. Throws where there is none.
at::Tensor tensor_in(const Case& test, Model& model, const std::string& prefix, const std::string& name);

/// The gradient, zeros where nothing flowed.
at::Tensor gradient_of(const Parameter& parameter);

}  // namespace kf::parity
