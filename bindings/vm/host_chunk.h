#pragma once
// Functions of the program that are written in Lua.

#include <lua.hpp>

#include <string_view>

namespace kf::lua {

/// Leaves the compiled chunk on the stack. It has no line numbers, as a function of the program: messages then name the script's line that
/// called it.
void push_host_chunk(lua_State* L, std::string_view code);

}  // namespace kf::lua
