#include "bindings/vm/host_chunk.h"

#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {

void push_host_chunk(lua_State* L, std::string_view code) {
  lua_getglobal(L, "string");
  lua_getfield(L, -1, "dump");
  lua_remove(L, -2);
  KF_CHECK(luaL_loadbuffer(L, code.data(), code.size(), "=kf") == 0, Code::other, "{}", lua_tostring(L, -1));
  lua_pushboolean(L, 1);
  lua_call(L, 2, 1);
  const std::string_view bytes = text_at(L, -1);
  KF_CHECK(luaL_loadbuffer(L, bytes.data(), bytes.size(), "=kf") == 0, Code::other, "{}", lua_tostring(L, -1));
  lua_remove(L, -2);
}

}  // namespace kf::lua
