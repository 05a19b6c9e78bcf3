#pragma once
// kf.register.<kind>(name, factory, { fields = ..., doc = ... }).

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// Pushes the table behind kf.register.
void push_register(lua_State* L);

/// Reads the third argument of kf.register.<kind>; `where` starts the messages. Nothing at `index` is fine.
void read_part_options(lua_State* L, int index, const std::string& where, config::PartInfo& info);

/// Throws Code::script unless parts may be registered now.
void check_may_register(const Session& session, const std::string& where);

}  // namespace kf::lua
