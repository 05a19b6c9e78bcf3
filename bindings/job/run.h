#pragma once
// kf.run(job): trains from Lua.

#include <lua.hpp>

#include <string>
#include <utility>

#include "bindings/session/session.h"

namespace kf::lua {

/// kf.run(job) -> result table. Its job table is read like a recipe's; hooks in it serve this run only.
int run_job(lua_State* L);

/// The file and line from which the running C function was called; the script and 0 where that is not known (a tail call).
std::pair<std::string, int> call_place(lua_State* L, const Session& session);

}  // namespace kf::lua
