#pragma once
// Parts of the run itself from Lua: metrics, sinks, checkpoint strategies, plans.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// factory{ config, options } -> { every = n, compute = function(ctx) -> number or { name = number } }
void add_metric(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options, dir } -> { write = function(row) ... end, ... }: begin, eval, saved, rewind, close, state and load may be
/// there
void add_sink(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options } -> function(step) -> boolean
void add_ckpt_strategy(lua_State* L, Session& session, config::PartInfo info);
/// factory{ config, options } -> { ["name pattern"] = "colwise" | "rowwise" | "sequence" | "replicate" }
void add_parallel_plan(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
