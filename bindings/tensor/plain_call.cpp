#include "bindings/tensor/plain_call.h"

#include <cmath>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/tensor.h"

namespace kf::lua {
namespace {

using Code = PlainValue::Code;

constexpr double kExact = 9007199254740992.0;  // 2^53

}  // namespace

std::uint32_t PlainCall::read(lua_State* L, int first) {
  int last = lua_gettop(L);
  const int table = last;
  const bool named = last > first && lua_type(L, table) == LUA_TTABLE && lua_objlen(L, table) == 0;
  last -= named ? 1 : 0;
  count = last - first + 1;
  if (count < 1 || count > kMost) {
    return kOther;
  }
  std::uint32_t key = 0;
  for (int i = 0; i < count; ++i) {
    PlainValue& value = values[static_cast<std::size_t>(i)];
    if (!read_value(L, first + i, value)) {
      return kOther;
    }
    key = key << 4 | static_cast<std::uint32_t>(value.code);
  }
  return named && !read_keywords(L, table, key) ? kOther : key;
}

bool PlainCall::read_value(lua_State* L, int index, PlainValue& value) {
  switch (lua_type(L, index)) {
    case LUA_TNIL: value.code = Code::nil; return true;
    case LUA_TBOOLEAN:
      value.code = Code::boolean;
      value.flag = lua_toboolean(L, index) != 0;
      return true;
    case LUA_TNUMBER: {
      value.number = lua_tonumber(L, index);
      const bool whole = std::floor(value.number) == value.number && std::abs(value.number) <= kExact;
      value.code = whole ? Code::integer : Code::real;
      edge = edge || value.number == 0x1p63;
      value.integer = whole ? static_cast<std::int64_t>(value.number) : 0;
      return true;
    }
    case LUA_TUSERDATA:
      value.tensor = tensor_at(L, index);
      value.code = Code::tensor;
      if (value.tensor == nullptr) {
        const auto real = float_at(L, index);
        value.code = Code::real;
        value.number = real.value_or(0);
        edge = edge || value.number == 0x1p63;
        return real.has_value();
      }
      return true;
    case LUA_TTABLE: value.code = Code::integers; return item_count == 0 && read_items(L, index);
    default: return false;
  }
}

/// The table at `index` has no items. The key gets the codes of its values, and at its top their number.
bool PlainCall::read_keywords(lua_State* L, int index, std::uint32_t& key) {
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const int place = count + keywords;
    if (place >= kMost || lua_type(L, -2) != LUA_TSTRING || !read_value(L, lua_gettop(L), values[static_cast<std::size_t>(place)])) {
      lua_pop(L, 2);
      return false;
    }
    std::size_t size = 0;
    const char* name = lua_tolstring(L, -2, &size);
    names[static_cast<std::size_t>(keywords)] = {name, size};
    key = key << 4 | static_cast<std::uint32_t>(values[static_cast<std::size_t>(place)].code);
    ++keywords;
  }
  key |= static_cast<std::uint32_t>(keywords) << (4 * kMost);
  return keywords > 0;  // {} is an empty list
}

bool PlainCall::read_items(lua_State* L, int index) {
  const auto length = static_cast<int>(lua_objlen(L, index));
  if (length < 1 || length > kMostItems) {
    return false;
  }
  if (has_names(L, index, length)) {
    lua_pop(L, 1);
    return false;
  }
  for (int i = 0; i < length; ++i) {
    lua_rawgeti(L, index, i + 1);
    const double number = lua_tonumber(L, -1);
    const bool whole = lua_type(L, -1) == LUA_TNUMBER && std::floor(number) == number && std::abs(number) <= kExact;
    lua_pop(L, 1);
    if (!whole) {
      return false;
    }
    items[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(number);
  }
  item_count = length;
  return true;
}

}  // namespace kf::lua
