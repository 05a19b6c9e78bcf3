#pragma once
// From settings to a model without storage.

#include <memory>

#include "config/schema/config.h"
#include "model/model.h"
#include "registry/registries.h"

namespace kf {

/// Whose part of a model is built.
struct ModelPart {
  const World* world = nullptr;          // outlives the model; null: one rank
  const config::Stage* stage = nullptr;  // null: all layers
};

/// The registered model of `model.model_type`, with the adapters of [adapter] and with train.trainable and train.frozen applied. Its
/// weights have no storage until `materialize`.
std::shared_ptr<Model> build_model(const config::Config& config, const Registries& registries, const ModelPart& part = {});

}  // namespace kf
