#pragma once
// An optimizer written in Lua, over lists of tensors.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// Registers the optimizer whose factory is at stack index 2: factory{ config, options } -> { state = { names }, step(g) }. `step` is
/// called once an update for each decay group with g = { params, grads, state, names, lr, weight_decay, step }: lists over the parameters
/// that have a gradient; g.state.<name> is one fp32 tensor like each parameter, zero at first, and saved in checkpoints.
void add_optimizer(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
