#include "bindings/tensor/numbers.h"

#include <cmath>
#include <new>
#include <utility>

#include "bindings/tensor/names.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::lua {
namespace {

struct FloatBox {
  static constexpr std::uint64_t kMagic = 0x6b665f666c6f6174ULL;
  std::uint64_t magic = kMagic;
  double value = 0;
};

constexpr char kFloat[] = "kf.float";
constexpr char kSplit[] = "kf.split_integer";
constexpr char kJoin[] = "kf.join_integer";
constexpr int kCdata = 10;  // LUA_TCDATA of LuaJIT, which lua.h does not name

// Cdata is out of reach of the C API: Lua itself takes it apart into two exact numbers, and puts it together.
constexpr char kHelpers[] = R"(
local ffi = require("ffi")
local function split(value)
  local unsigned = ffi.istype("uint64_t", value)
  if not (unsigned or ffi.istype("int64_t", value)) then
    return nil
  end
  value = ffi.cast("int64_t", value)
  local low = tonumber(bit.band(value, 0xffffffffLL))
  return tonumber(bit.arshift(value, 32)), low, unsigned
end
local function join(high, low, unsigned)
  local value = ffi.cast("int64_t", high) * 4294967296LL + ffi.cast("int64_t", low)
  return unsigned and ffi.cast("uint64_t", value) or value
end
return split, join
)";

int float_text(lua_State* L) {
  const auto value = float_at(L, 1);
  lua_pushfstring(L, "%f", value.value_or(0));
  return 1;
}

}  // namespace

int make_float(lua_State* L) {
  KF_CHECK(lua_type(L, 1) == LUA_TNUMBER, Code::script, "kf.float: expected a number, got {}", describe(L, 1));
  const double value = lua_tonumber(L, 1);
  new (lua_newuserdata(L, sizeof(FloatBox))) FloatBox{FloatBox::kMagic, value};
  luaL_getmetatable(L, kFloat);
  lua_setmetatable(L, -2);
  return 1;
}

std::optional<double> float_at(lua_State* L, int index) {
  const void* place = lua_touserdata(L, index);
  if (place == nullptr || lua_objlen(L, index) != sizeof(FloatBox)) {
    return std::nullopt;
  }
  const auto* box = static_cast<const FloatBox*>(place);
  return box->magic == FloatBox::kMagic ? std::optional<double>(box->value) : std::nullopt;
}

std::optional<WholeNumber> whole_number_at(lua_State* L, int index) {
  if (lua_type(L, index) != kCdata) {
    const auto plain = exact_integer(L, index);
    return plain ? std::optional(WholeNumber{*plain}) : std::nullopt;
  }
  lua_pushvalue(L, index);
  lua_getfield(L, LUA_REGISTRYINDEX, kSplit);
  lua_insert(L, -2);
  lua_call(L, 1, 3);
  std::optional<WholeNumber> out;
  if (!lua_isnil(L, -3)) {
    const auto high = static_cast<std::int64_t>(lua_tonumber(L, -3));
    const auto low = static_cast<std::int64_t>(lua_tonumber(L, -2));
    const auto value = static_cast<std::int64_t>((static_cast<std::uint64_t>(high) << 32) | static_cast<std::uint64_t>(low));
    out = WholeNumber{value, lua_toboolean(L, -1) != 0 && value < 0};
  }
  lua_pop(L, 3);
  return out;
}

std::optional<std::int64_t> wide_integer_at(lua_State* L, int index) {
  if (lua_type(L, index) != kCdata) {
    return std::nullopt;
  }
  const auto whole = whole_number_at(L, index);
  return whole && !whole->beyond ? std::optional(whole->value) : std::nullopt;
}

namespace {

void push_halves(lua_State* L, std::int64_t value, bool is_unsigned) {
  lua_getfield(L, LUA_REGISTRYINDEX, kJoin);
  lua_pushnumber(L, static_cast<double>(value >> 32));
  lua_pushnumber(L, static_cast<double>(value & 0xffffffff));
  lua_pushboolean(L, is_unsigned);
  lua_call(L, 3, 1);
}

}  // namespace

void push_wide(lua_State* L, std::int64_t value) {
  constexpr std::int64_t largest = std::int64_t{1} << 53;
  if (value <= largest && value >= -largest) {
    lua_pushnumber(L, static_cast<double>(value));
  } else {
    push_halves(L, value, false);
  }
}

void push_wide_unsigned(lua_State* L, std::uint64_t value) {
  if (value <= std::uint64_t{1} << 53) {
    lua_pushnumber(L, static_cast<double>(value));
  } else {
    push_halves(L, static_cast<std::int64_t>(value), true);
  }
}

namespace {

/// The bounds of an integer type below 64 bits.
std::pair<std::int64_t, std::int64_t> bounds_of(at::ScalarType type) {
  const auto bits = static_cast<int>(8 * c10::elementSize(type));
  const bool is_unsigned =
      type == at::kByte || type == at::ScalarType::UInt16 || type == at::ScalarType::UInt32 || type == at::ScalarType::UInt64;
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  return is_unsigned ? std::pair<std::int64_t, std::int64_t>{0, 2 * half - 1} : std::pair{-half, half - 1};
}

bool fits(const WholeNumber& number, at::ScalarType type) {
  if (type == at::kLong) {
    return !number.beyond;
  }
  if (type == at::ScalarType::UInt64) {
    return number.beyond || number.value >= 0;
  }
  const auto [least, most] = bounds_of(type);
  return !number.beyond && number.value >= least && number.value <= most;
}

}  // namespace

std::int64_t checked_element(lua_State* L, int index, at::ScalarType type, std::string_view where, const std::string& place) {
  const auto number = whole_number_at(L, index);
  const double real = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0.5;
  const bool large = !number && std::floor(real) == real;
  KF_CHECK(number || large, Code::script, "{}: {} is no {}{}", where, describe_any(L, index), name_of(type), place);
  KF_CHECK(!large || std::abs(real) >= 0x1p63, Code::script, "{}: {} may be inexact, as Lua numbers are from 2^53 on; write {}LL{}", where,
           real, static_cast<std::int64_t>(real), place);
  KF_CHECK(number && fits(*number, type), Code::script, "{}: {} cannot be converted to {} without overflow{}", where,
           number && number->beyond ? to_text(static_cast<std::uint64_t>(number->value))
           : number                 ? to_text(number->value)
                                    : to_text(real),
           name_of(type), place);
  return number->value;
}

void check_int64(double value, std::string_view where) {
  KF_CHECK(value != 0x1p63, Code::script, "{}: 2^63 cannot be converted to int64 without overflow", where);
}

void open_numbers(lua_State* L) {
  luaL_newmetatable(L, kFloat);
  lua_pushcfunction(L, float_text);
  lua_setfield(L, -2, "__tostring");
  lua_pop(L, 1);
  KF_CHECK(luaL_loadbuffer(L, kHelpers, sizeof kHelpers - 1, "=kf.numbers") == 0, Code::other, "{}", lua_tostring(L, -1));
  lua_call(L, 0, 2);
  lua_setfield(L, LUA_REGISTRYINDEX, kJoin);
  lua_setfield(L, LUA_REGISTRYINDEX, kSplit);
}

}  // namespace kf::lua
