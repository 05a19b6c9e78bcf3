#pragma once
// The one way into C++ from Lua: exceptions become Lua errors that name the calling line.

#include <lua.hpp>

#include <exception>

namespace kf::lua {

/// Pushes the message of `error`, with the caller's `file:line:` in front, for lua_error. What the script itself raised keeps its position.
void push_error(lua_State* L, const std::exception& error);

/// Wraps `body` as a function that Lua may call.
template <int (*body)(lua_State*)>
int guarded(lua_State* L) {
  try {
    return body(L);
  } catch (const std::exception& error) {  // not (...): on x64 a Lua error is one, and must pass
    push_error(L, error);
  }
  return lua_error(L);  // raised here, where no C++ object is alive
}

}  // namespace kf::lua
