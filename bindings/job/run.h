#pragma once
// kf.run(job): trains from Lua.

#include <lua.hpp>

namespace kf::lua {

/// kf.run(job) -> result table. Its job table is read like a recipe's; hooks in it serve this run only.
int run_job(lua_State* L);

}  // namespace kf::lua
