#pragma once
// Coroutines in coroutines: LuaJIT counts no depth, and the thread's stack is full after some ten thousand.

#include <lua.hpp>

namespace kf::lua {

/// coroutine.resume and coroutine.wrap as they are, but for an error where the stack ends.
void limit_coroutines(lua_State* L);

}  // namespace kf::lua
