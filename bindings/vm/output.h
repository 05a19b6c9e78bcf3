#pragma once
// What a script prints is in the run's log file, too.

#include <lua.hpp>

namespace kf::lua {

/// print, io.write and io.stdout:write as they are, but what they write to standard output is also kept for log.txt (core/log_keep.h).
void keep_output(lua_State* L);

}  // namespace kf::lua
