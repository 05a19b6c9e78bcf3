#include "bindings/vm/output.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/log_keep.h"
#include "core/text.h"

namespace kf::lua {
namespace {

TakenOutput* taker = nullptr;  // Lua has one thread

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
  if (taker != nullptr) {
    taker->add(line);
    return 0;
  }
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
  if (shown && taker != nullptr) {
    taker->add(text);
    lua_pushboolean(L, 1);
    return 1;
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

TakenOutput::TakenOutput(std::size_t most) : most_(most) { taker = this; }
TakenOutput::~TakenOutput() { taker = nullptr; }

void TakenOutput::add(std::string_view text) {
  const std::size_t taken = std::min(text.size(), most_ - text_.size());
  text_ += text.substr(0, taken);
  left_out_ += text.size() - taken;
}

std::string TakenOutput::text() const {
  return left_out_ == 0 ? text_ : text_ + format("\n(and {} bytes more, which are left out)\n", left_out_);
}

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
