#pragma once
// How the weights of a model start (model.init, init_std, init_scale, embed_init_std).

#include <cstdint>

#include "model/parameter.h"

namespace kf {

namespace config {
struct ModelConfig;
}

/// A matrix of `fan_in` inputs: N(0, init_std), or under fan_in a normal of variance init_scale / fan_in cut at two deviations.
Init hidden_init(const config::ModelConfig& model, std::int64_t fan_in);
/// A matrix that writes into the residual stream: as `hidden_init`, but N(0, init_std / sqrt(2 n_layers)) (GPT-2, section 2.3).
Init output_init(const config::ModelConfig& model, std::int64_t fan_in);
/// Token and position tables: N(0, embed_init_std); unset takes init_std, or 1 / sqrt(dim) under fan_in.
Init embedding_init(const config::ModelConfig& model);

}  // namespace kf
