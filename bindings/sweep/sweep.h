#pragma once
// kf.sweep: from a script's table to a sweep::Definition whose functions call back into the script.

#include <lua.hpp>

#include "bindings/vm/runtime.h"
#include "metrics/run_result.h"
#include "sweep/definition.h"

namespace kf::lua {

struct Session;

/// What the session keeps of one call of kf.sweep.
struct LuaSweep {
  sweep::Definition definition;
  Ref objective;  // where that is a function
};

/// kf.sweep{ base, space, method, trials, seed, objective, direction, parallel, ranks, isolate, adjust, prune } -> a value for the script
/// to return. Everything that needs no settings is checked here; Code::script names the line of the key.
int make_sweep(lua_State* L);

/// The sweep that the value at `index` stands for; null when it is something else.
LuaSweep* to_sweep(lua_State* L, int index, Session& session);

/// The objective's value for a result: result.<dotted name>, or what the function returns. Throws Code::script for anything but a number.
double objective_of(lua_State* L, const LuaSweep& sweep, const RunResult& result);

}  // namespace kf::lua
