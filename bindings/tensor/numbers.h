#pragma once
// Numbers that a Lua number cannot say: floats without a fraction (kf.float), integers past 2^53 (LuaJIT's int64 cdata).

#include <lua.hpp>

#include <cstdint>
#include <optional>

namespace kf::lua {

/// kf.float(x): a float even where x is integral.
int make_float(lua_State* L);
/// The value of a kf.float; nothing for anything else.
std::optional<double> float_at(lua_State* L, int index);

/// The value of an int64_t or uint64_t cdata; nothing for anything else.
std::optional<std::int64_t> wide_integer_at(lua_State* L, int index);
/// A Lua number where it is exact, else an int64_t cdata.
void push_wide(lua_State* L, std::int64_t value);

/// Keeps what the functions above need in the registry.
void open_numbers(lua_State* L);

}  // namespace kf::lua
