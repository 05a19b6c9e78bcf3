#pragma once
// The native half of the module `kf`; lua/kf/init.lua is the other.

#include <lua.hpp>

namespace kf::lua {

/// Makes require("kf.native") work.
void preload_native(lua_State* L);

}  // namespace kf::lua
