#pragma once
// Checked access to values on the Lua stack, and pushers. May raise Lua errors: for use inside protected calls.

#include <lua.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::lua {

/// "nil", "table", ...; a number or string with its value: "number 2.5", "'fast'".
std::string describe(lua_State* L, int index);
/// "recipe.lua:12" of the function that called the running C function; "" when that is not Lua.
std::string caller_position(lua_State* L, int level = 1);
/// "recipe.lua:12" of the definition of the function at `index`; "" for a C function.
std::string definition_position(lua_State* L, int index);
/// Whether the value can be called.
bool is_callable(lua_State* L, int index);
/// "; did you mean 'x'?", or "; have: a, b" when nothing is near, "; there are none".
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

/// The value as an exact integer, or nothing: not a number, a fraction, or past 2^53.
std::optional<std::int64_t> exact_integer(lua_State* L, int index);

/// The string argument `index` of `function` ("kf.log"): exactly a string, numbers are not taken for one.
std::string check_text(lua_State* L, int index, std::string_view function, std::string_view argument);

/// The bytes of the string at `index`, as long as it is there. (A number at `index` would become a string.)
inline std::string_view text_at(lua_State* L, int index) {
  std::size_t size = 0;
  const char* const text = lua_tolstring(L, index, &size);
  return {text, size};
}

inline void push(lua_State* L, std::string_view text) { lua_pushlstring(L, text.data(), text.size()); }
inline void push(lua_State* L, double value) { lua_pushnumber(L, value); }
/// Throws Code::script when the integer is not exact as a Lua number.
void push_integer(lua_State* L, std::int64_t value, std::string_view what);

/// t[name] = value for the table on top.
template <class T>
void set(lua_State* L, const char* name, const T& value) {
  push(L, value);
  lua_setfield(L, -2, name);
}

}  // namespace kf::lua
