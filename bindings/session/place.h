#pragma once
// Where in a script something stands: the call that is on, and the keys of the table that it was given.

#include <lua.hpp>

#include <string>
#include <utility>
#include <vector>

#include "bindings/session/session.h"
#include "bindings/value/values.h"
#include "config/tree/node.h"

namespace kf::lua {

/// The file and line from which the running C function was called; the script and 0 where that is not known (a tail call).
std::pair<std::string, int> call_place(lua_State* L, const Session& session);

/// The places of the key `path` and of its value in the table constructor of `file` nearest to `line`; else, for both, that of the nearest
/// table around it, else `line`.
Origins places_of(Session& session, const std::string& file, int line, std::vector<std::string> path);

}  // namespace kf::lua
