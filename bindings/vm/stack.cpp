#include "bindings/vm/stack.h"

#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace kf::lua {
namespace {

constexpr double kLargestExact = 9007199254740992.0;  // 2^53

std::string position_text(const lua_Debug& ar, int line) {
  return line > 0 ? format("{}:{}", ar.source[0] == '@' ? ar.source + 1 : ar.short_src, line) : "";
}

}  // namespace

std::string describe(lua_State* L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNONE: return "nothing";
    case LUA_TNUMBER: return "number " + to_text(lua_tonumber(L, index));
    case LUA_TSTRING: return "'" + std::string(lua_tostring(L, index)) + "'";
    case LUA_TBOOLEAN: return lua_toboolean(L, index) ? "true" : "false";
    default: return luaL_typename(L, index);
  }
}

std::string caller_position(lua_State* L, int level) {
  lua_Debug ar;
  if (!lua_getstack(L, level, &ar)) {
    return "";
  }
  lua_getinfo(L, "Sl", &ar);
  return position_text(ar, ar.currentline);
}

std::string definition_position(lua_State* L, int index) {
  lua_Debug ar;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &ar);
  return position_text(ar, ar.linedefined);
}

bool is_callable(lua_State* L, int index) {
  if (lua_isfunction(L, index)) {
    return true;
  }
  const bool callable = luaL_getmetafield(L, index, "__call") != 0;
  if (callable) {
    lua_pop(L, 1);
  }
  return callable;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  if (names.empty()) {
    return "; there are none";
  }
  const std::string near = nearest(word, names);
  return near.empty() ? "; have: " + join(names, ", ") : "; did you mean '" + near + "'?";
}

std::optional<std::int64_t> exact_integer(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TNUMBER) {
    return std::nullopt;
  }
  const double value = lua_tonumber(L, index);
  if (std::floor(value) != value || std::abs(value) > kLargestExact) {  // false for nan, so nan leaves here too
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

std::string check_text(lua_State* L, int index, std::string_view function, std::string_view argument) {
  KF_CHECK(lua_type(L, index) == LUA_TSTRING, Code::script, "{}: expected {} (a string), got {}", function, argument, describe(L, index));
  std::size_t size = 0;
  const char* text = lua_tolstring(L, index, &size);
  return {text, size};
}

void push_integer(lua_State* L, std::int64_t value, std::string_view what) {
  constexpr auto largest = static_cast<std::int64_t>(kLargestExact);
  KF_CHECK(value <= largest && value >= -largest, Code::script, "{} ({}) is not exact as a Lua number, which ends at 2^53", what, value);
  lua_pushnumber(L, static_cast<double>(value));
}

}  // namespace kf::lua
