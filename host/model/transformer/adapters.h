#pragma once
// Adapters of the linear layers of a model: [adapter].

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "model/layer/linear.h"
#include "model/model.h"
#include "registry/registries.h"

namespace kf {

/// The linear layers of `model` by their names from the root ("layers.0.attention.q_proj"), each once.
std::vector<std::pair<std::string, std::shared_ptr<Linear>>> linear_layers(const Model& model);

/// Gives every layer that adapter.targets names an adapter.name, and marks all weights but the adapters' as not trainable; nothing where
/// adapter.name is empty. Throws Code::config for a target that names no layer, and for weights that are read by others than their layer
/// (heads, embeddings, experts, routers): what an adapter gives would not reach those.
void attach_adapters(Model& model, const config::Config& config, const Registries& registries);

/// The masters of `model` under the names that it has without adapters, these merged into their layers' weights.
std::vector<std::pair<std::string, at::Tensor>> merged_weights(Model& model);

}  // namespace kf
