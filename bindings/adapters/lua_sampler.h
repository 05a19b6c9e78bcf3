#pragma once
// A sampler of the next token written in Lua.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// factory{ config, options } -> function(logits, state) -> ids: logits (B, V); the ids as an int64 tensor (B) or a list of B. `state` is a
/// table of the text: step (tokens so far), prompt (ids), temperature, top_k, top_p, and whatever the function keeps there.
void add_sampler(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
