#include "bindings/vm/output.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/log_keep.h"

namespace kf::lua {
namespace {

/// As Lua's own, in one piece, so that the log gets the line that standard output got.
int print(lua_State* L) {
  const int count = lua_gettop(L);
  std::string line;
  for (int i = 1; i <= count; ++i) {
    lua_getglobal(L, "tostring");
    lua_pushvalue(L, i);
    lua_call(L, 1, 1);
    std::size_t size = 0;
    const char* const text = lua_tolstring(L, -1, &size);
    if (text == nullptr) {
      return luaL_error(L, "'tostring' must return a string to 'print'");
    }
    line.append(i > 1 ? "\t" : "").append(text, size);
    lua_pop(L, 1);
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  log::keep_text(line);
  return 0;
}

/// io.write, and the `write` of files: the first upvalue is Lua's own, the second io.stdout, the third io.output (nil for the method, whose
/// file is its first argument).
int write(lua_State* L) {
  const int count = lua_gettop(L);
  const bool method = lua_isnil(L, lua_upvalueindex(3));
  if (method) {
    lua_pushvalue(L, 1);
  } else {
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_call(L, 0, 1);
  }
  const bool shown = lua_rawequal(L, -1, lua_upvalueindex(2)) != 0;
  lua_pop(L, 1);
  std::string text;
  for (int i = method ? 2 : 1; shown && i <= count && lua_isstring(L, i) != 0; ++i) {
    lua_pushvalue(L, i);  // a number is turned into text where it stands
    text += text_at(L, -1);
    lua_pop(L, 1);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, count, LUA_MULTRET);
  log::keep_text(text);
  return lua_gettop(L);
}

/// Replaces `write` of the table on top of the stack. `io` is where the table io lies.
void replace_write(lua_State* L, int io, bool method) {
  lua_getfield(L, -1, "write");
  lua_getfield(L, io, "stdout");
  if (method) {
    lua_pushnil(L);
  } else {
    lua_getfield(L, io, "output");
  }
  lua_pushcclosure(L, &guarded<write>, 3);
  lua_setfield(L, -2, "write");
}

}  // namespace

void keep_output(lua_State* L) {
  lua_pushcfunction(L, &guarded<print>);
  lua_setglobal(L, "print");
  lua_getglobal(L, "io");
  const int io = lua_gettop(L);
  replace_write(L, io, false);
  lua_getfield(L, io, "stdout");
  lua_getmetatable(L, -1);
  lua_getfield(L, -1, "__index");  // the methods of all files
  replace_write(L, io, true);
  lua_settop(L, io - 1);
}

}  // namespace kf::lua
