#pragma once
// __gc of userdata that hold a C++ object.

#include <lua.hpp>

#include <cstring>
#include <memory>

namespace kf::lua {

/// Destroys the Box in the userdata at 1 and takes its metatable away. Scripts reach __gc (debug.getmetatable): called by hand, twice, or
/// with anything else, it destroys nothing a second time; later use meets a userdata without methods and without its magic.
template <class Box>
int collect(lua_State* L) {
  void* const place = lua_touserdata(L, 1);
  if (place == nullptr || lua_objlen(L, 1) != sizeof(Box) || lua_getmetatable(L, 1) == 0) {
    return 0;
  }
  lua_getfield(L, -1, "__gc");
  if (lua_tocfunction(L, -1) != &collect<Box>) {
    return 0;
  }
  lua_pushnil(L);
  lua_setmetatable(L, 1);
  std::destroy_at(static_cast<Box*>(place));
  std::memset(place, 0, sizeof(Box));
  return 0;
}

}  // namespace kf::lua
