#pragma once
// Numbers that a Lua number cannot say: floats without a fraction (kf.float), integers past 2^53 (LuaJIT's int64 cdata).

#include <c10/core/ScalarType.h>
#include <lua.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kf::lua {

/// kf.float(x): a float even where x is integral.
int make_float(lua_State* L);
/// The value of a kf.float; nothing for anything else.
std::optional<double> float_at(lua_State* L, int index);

/// A whole number of Lua: a number up to 2^53, an int64_t or a uint64_t cdata.
struct WholeNumber {
  std::int64_t value = 0;
  bool beyond = false;  // a uint64_t above int64's largest: `value` has its bits
};
std::optional<WholeNumber> whole_number_at(lua_State* L, int index);
/// The value of an int64_t or uint64_t cdata that int64 can hold; nothing for anything else.
std::optional<std::int64_t> wide_integer_at(lua_State* L, int index);
/// A Lua number where it is exact, else an int64_t cdata.
void push_wide(lua_State* L, std::int64_t value);
/// A Lua number where it is exact, else a uint64_t cdata.
void push_wide_unsigned(lua_State* L, std::uint64_t value);

/// The whole number at `index` as the bits of an element of the integer type `type`. Throws Code::script where it is none, or does not fit:
/// "kf.tensor: 300 cannot be converted to uint8 without overflow". `where` starts the message, `place` ends it.
std::int64_t checked_element(lua_State* L, int index, c10::ScalarType type, std::string_view where, const std::string& place = {});
/// Throws where a real number is 2^63, the one that LibTorch's own check lets wrap in an int64.
void check_int64(double value, std::string_view where);

/// Keeps what the functions above need in the registry.
void open_numbers(lua_State* L);

}  // namespace kf::lua
