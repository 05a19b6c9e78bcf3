#pragma once
// The parts of a model by the settings, native or registered by a script.

#include <memory>

#include "model/layer/attention.h"
#include "model/layer/mlp.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/transformer/block.h"
#include "registry/registries.h"

namespace kf {

/// By model.norm_type, over `place.dim`.
std::shared_ptr<Norm> make_norm(const PartArgs& args, const Place& place);
/// Experts in layers that have them. Else by model.activation, `place.dim` wide outside and model.ffn_hidden_dim inside.
std::shared_ptr<Mlp> make_mlp(const PartArgs& args, const Place& place);
/// By model.attention.
std::shared_ptr<Attention> make_attention(const PartArgs& args, const Place& place);
/// By model.block.
std::shared_ptr<Block> make_block(const PartArgs& args, const Place& place);

}  // namespace kf
