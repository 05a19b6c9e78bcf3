#include "bindings/tensor/numbers.h"

#include <cmath>
#include <new>

#include "bindings/stack.h"
#include "core/error.h"

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
  if not (ffi.istype("int64_t", value) or ffi.istype("uint64_t", value)) then
    return nil
  end
  value = ffi.cast("int64_t", value)
  local low = tonumber(bit.band(value, 0xffffffffLL))
  return tonumber(bit.arshift(value, 32)), low
end
local function join(high, low)
  return ffi.cast("int64_t", high) * 4294967296LL + ffi.cast("int64_t", low)
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

std::optional<std::int64_t> wide_integer_at(lua_State* L, int index) {
  if (lua_type(L, index) != kCdata) {
    return std::nullopt;
  }
  lua_pushvalue(L, index);
  lua_getfield(L, LUA_REGISTRYINDEX, kSplit);
  lua_insert(L, -2);
  lua_call(L, 1, 2);
  std::optional<std::int64_t> out;
  if (!lua_isnil(L, -2)) {
    const auto high = static_cast<std::int64_t>(lua_tonumber(L, -2));
    const auto low = static_cast<std::int64_t>(lua_tonumber(L, -1));
    out = static_cast<std::int64_t>((static_cast<std::uint64_t>(high) << 32) | static_cast<std::uint64_t>(low));
  }
  lua_pop(L, 2);
  return out;
}

void push_wide(lua_State* L, std::int64_t value) {
  constexpr std::int64_t largest = std::int64_t{1} << 53;
  if (value <= largest && value >= -largest) {
    lua_pushnumber(L, static_cast<double>(value));
    return;
  }
  const std::int64_t high = value >> 32;
  lua_getfield(L, LUA_REGISTRYINDEX, kJoin);
  lua_pushnumber(L, static_cast<double>(high));
  lua_pushnumber(L, static_cast<double>(value & 0xffffffff));
  lua_call(L, 2, 1);
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
