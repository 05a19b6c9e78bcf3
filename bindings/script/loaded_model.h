#pragma once
// kf.load_model and kf.losses: what the host has, as functions of tensors.

#include <lua.hpp>

namespace kf::lua {

/// kf.load_model(checkpoint) -> a module: tokens (B, T) -> logits (B, T, V). Evaluation mode, weights that require no gradient.
/// `checkpoint` is a step_N folder, or a run's folder whose newest one is meant.
int load_model(lua_State* L);

/// native.loss(name, logits (N, V), labels (N)) -> the sum over counted labels, and their number; both tensors without dims.
int native_loss(lua_State* L);

/// native.loss_names() -> the registered losses.
int loss_names(lua_State* L);

}  // namespace kf::lua
