#pragma once
// nn.recompute: activation checkpointing inside of models written in Lua.

#include <lua.hpp>

#include <cstdint>

namespace kf::lua {

/// nn.recompute(module, x [, ctx]) -> module(x [, ctx]), of which x alone stays until backward, which runs the module again. Without a
/// backward to come (evaluation, generation) it is a plain call.
int recompute_call(lua_State* L);

/// How often it was called on this thread.
std::int64_t recompute_calls();

}  // namespace kf::lua
