#pragma once
// Activation checkpointing (Chen et al. 2016): what forward made is dropped and made again in backward.

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "config/schema/config.h"

namespace kf {

/// What of a layer is made again.
struct RecomputePolicy {
  bool block = false;      // the whole of it
  bool attention = false;  // or these branches of it
  bool mlp = false;
  std::vector<std::string> kept;  // operators whose results are kept: "aten::mm"; and named results: "#q"

  bool any() const { return block || attention || mlp; }
};

/// By train.activation_checkpointing, remat_every and remat_save, for layer `layer` from 0. Throws Code::config for an operator that there
/// is none of.
RecomputePolicy recompute_policy(const config::TrainConfig& train, std::int64_t layer);

struct ForwardContext;

/// A piece of the model. It is run twice and must do the same both times: dropout draws from seeds, the CPU's generator is set back.
struct Region {
  std::function<at::Tensor(const at::Tensor&, const ForwardContext&)> body;
  std::vector<std::string> kept;  // as in RecomputePolicy
};

/// body(x, context), of which x and the results of the kept operators stay until backward; backward runs the body again, on this thread,
/// and gives every gradient bit for bit as without recomputation (where results are kept: as by the layers' formulas, see one_node.h); so
/// for what the body leaves in the results of the context. Works also where x needs no gradient. Throws Code::other in backward when a kept
/// result was changed in place meanwhile.
at::Tensor recompute(Region region, const at::Tensor& x, const ForwardContext& context);

/// Whether there will be a backward for which activations are worth dropping.
bool may_recompute(const ForwardContext& context, bool training);

}  // namespace kf
