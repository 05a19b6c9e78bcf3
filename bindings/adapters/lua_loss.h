#pragma once
// A loss written in Lua.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// Registers the loss whose factory is at stack index 2: factory{ config, options } -> function(logits (N, V), labels (N), batch) -> the
/// sum over counted tokens, and their number.
void add_loss(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
