#pragma once
// Routers written in Lua.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// Registers the factory at stack index 2: factory{ config, options, dim, num_experts, top_k, layer } -> module: x (N, C) -> weights (N,
/// k), indices (N, k) int64 [, losses]. `losses` is a table of scalars: balance (times model.moe_aux_loss_weight) and z (times
/// model.moe_router_z_loss_weight) as native routers give them, any other name is added to the loss as it is. The module may have
/// `rebalance(self, counts, progress)`: called after every update with the assignments (E) of its tokens, to move its buffers.
void add_router(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
