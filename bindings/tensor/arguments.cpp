#include "bindings/tensor/arguments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bindings/tensor/names.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/rng.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

using Type = Value::Type;

constexpr double kExact = 9007199254740992.0;  // 2^53
constexpr int kNotAtAll = -1;

Type number_type(double value) { return std::floor(value) == value && std::abs(value) <= kExact ? Type::integer : Type::real; }

Type plain_type(lua_State* L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL: return Type::nil;
    case LUA_TBOOLEAN: return Type::boolean;
    case LUA_TNUMBER: return number_type(lua_tonumber(L, index));
    case LUA_TSTRING: return Type::text;
    case LUA_TUSERDATA:
      if (tensor_at(L, index) != nullptr) {
        return Type::tensor;
      }
      return float_at(L, index) ? Type::real : generator_at(L, index) != nullptr ? Type::generator : Type::other;
    case LUA_TTABLE: return Type::list;
    default: return wide_integer_at(L, index) ? Type::integer : Type::other;
  }
}

/// What all items of the table at value.index are.
void look_into(lua_State* L, Value& value) {
  value.length = static_cast<int>(lua_objlen(L, value.index));
  KF_CHECK(!has_names(L, value.index, value.length), Code::script,
           "a list has items only, got the key {}; keywords are a table of their own, last", describe(L, -1));
  for (int i = 1; i <= value.length; ++i) {
    lua_rawgeti(L, value.index, i);
    Type type = plain_type(L, -1);
    const bool gap = type == Type::boolean && lua_toboolean(L, -1) == 0;
    lua_pop(L, 1);
    if (gap && (value.item == Type::tensor || i == 1)) {
      lua_rawgeti(L, value.index, value.length);  // { false, false } is a list of booleans, { false, tensor } one with a gap
      const bool tensors = value.item == Type::tensor || box_at(L, -1) != nullptr;
      lua_pop(L, 1);
      if (tensors) {
        value.gaps = true;
        type = Type::tensor;
      }
    }
    if (i == 1) {
      value.item = type;
    } else if (value.item != type) {
      const bool numbers = (value.item == Type::integer || value.item == Type::real) && (type == Type::integer || type == Type::real);
      value.item = numbers ? Type::real : Type::other;
    }
  }
}

bool is_keyword_table(lua_State* L, int index) {
  if (!lua_istable(L, index)) {
    return false;
  }
  lua_pushnil(L);
  if (lua_next(L, index) == 0) {
    return false;
  }
  const bool named = lua_type(L, -2) == LUA_TSTRING;
  lua_pop(L, 2);
  return named;
}

/// The cost of one item, -1 when it does not fit. Exact 0, converted 1 or 2, a number where a tensor is wanted 16.
int fit_item(lua_State* L, Kind kind, Type type, int index) {
  switch (kind) {
    case Kind::tensor:
      return type == Type::tensor ? 0 : type == Type::integer || type == Type::real || type == Type::boolean ? 16 : kNotAtAll;
    case Kind::integer: return type == Type::integer ? 0 : kNotAtAll;
    case Kind::reduction: return type == Type::integer || (type == Type::text && reduction_named(text_at(L, index))) ? 0 : kNotAtAll;
    case Kind::real: return type == Type::real ? 0 : type == Type::integer ? 1 : kNotAtAll;
    case Kind::boolean: return type == Type::boolean ? 0 : kNotAtAll;
    case Kind::scalar: return type == Type::integer || type == Type::real ? 0 : type == Type::boolean ? 2 : kNotAtAll;
    case Kind::text: return type == Type::text ? 1 : kNotAtAll;
    case Kind::dimname: return type == Type::text ? 2 : kNotAtAll;
    case Kind::dtype: return type == Type::text && dtype_named(text_at(L, index)) ? 0 : kNotAtAll;
    case Kind::layout: return type == Type::text && layout_named(text_at(L, index)) ? 0 : kNotAtAll;
    case Kind::memory_format: return type == Type::text && memory_format_named(text_at(L, index)) ? 0 : kNotAtAll;
    case Kind::device: return type == Type::text && device_named(text_at(L, index)) ? 0 : kNotAtAll;
    case Kind::generator: return type == Type::generator ? 0 : kNotAtAll;
    case Kind::unknown: break;
  }
  return kNotAtAll;
}

int fit_value(lua_State* L, const ArgumentType& type, const Value& value) {
  if (value.type == Type::nil) {
    return type.optional ? 0 : kNotAtAll;
  }
  if (!type.list) {
    return value.type == Type::list ? kNotAtAll : fit_item(L, type.kind, value.type, value.index);
  }
  if (value.type != Type::list) {  // int[2] takes one number for both
    const bool scalar = type.size > 0 && (type.kind == Kind::integer || type.kind == Kind::real);
    const int cost = scalar ? fit_item(L, type.kind, value.type, value.index) : kNotAtAll;
    return cost == kNotAtAll ? cost : cost + 1;
  }
  if (value.length == 0) {
    return 0;
  }
  if (value.gaps && !type.optional_elements) {
    return kNotAtAll;
  }
  if (value.item == Type::list || value.item == Type::other || value.item == Type::nil) {
    return kNotAtAll;
  }
  if (type.kind == Kind::tensor && value.item != Type::tensor) {
    return kNotAtAll;
  }
  return fit_item(L, type.kind, value.item, 0);
}

/// Gives `parameter` the value `source`; adds its cost. False when it does not fit.
bool place(lua_State* L, const Signature& signature, std::size_t parameter, const Value& value, std::int16_t source, Fit& out,
           std::string* why) {
  const Slot& slot = signature.parameters[parameter];
  if (value.type == Value::Type::nil && slot.fallback && !slot.type.optional) {
    return true;  // nil for a parameter with a default is the default
  }
  const int cost = fit_value(L, slot.type, value);
  if (cost == kNotAtAll) {
    if (why != nullptr) {
      if (slot.type.kind == Kind::reduction) {
        *why = format("argument 'reduction' must be \"none\", \"mean\" or \"sum\", got {}", describe_any(L, value.index));
        return false;
      }
      *why = format("argument '{}' must be {} {}, got {}", slot.name, slot.type.kind == Kind::integer && !slot.type.list ? "an" : "a",
                    type_text(slot.type), describe_any(L, value.index));
    }
    return false;
  }
  out.source[parameter] = source;
  out.cost += cost;
  return true;
}

/// `out = { values, indices }`, as PyTorch's tuple: an item for each tensor that the operator writes to.
bool place_outs(const Signature& signature, const Value& list, Fit& out) {
  if (list.type != Type::list || list.item != Type::tensor) {
    return false;
  }
  std::int16_t item = 0;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    if (signature.parameters[i].out && out.source[i] == Fit::kDefault) {
      out.source[i] = static_cast<std::int16_t>(Fit::kOutItem + item++);
    }
  }
  return item > 0 && item == list.length;
}

bool place_keywords(lua_State* L, const Signature& signature, const CallArguments& call, Fit& out, std::string* why) {
  for (std::size_t k = 0; k < call.keywords.size(); ++k) {
    const Keyword& keyword = call.keywords[k];
    std::size_t parameter = 0;
    while (parameter < signature.parameters.size() && signature.parameters[parameter].name != keyword.name) {
      ++parameter;
    }
    if (parameter == signature.parameters.size()) {
      if (keyword.name == std::string_view("out") && place_outs(signature, keyword.value, out)) {
        continue;
      }
      if (why != nullptr) {
        std::vector<std::string> names;
        for (const Slot& slot : signature.parameters) {
          names.push_back(slot.name);
        }
        *why = format("no argument '{}'{}", keyword.name, suggestion(keyword.name, names));
      }
      return false;
    }
    if (out.source[parameter] != Fit::kDefault) {
      if (why != nullptr) {
        *why = format("argument '{}' is given twice", keyword.name);
      }
      return false;
    }
    if (!place(L, signature, parameter, keyword.value, static_cast<std::int16_t>(Fit::kKeyword + static_cast<int>(k)), out, why)) {
      return false;
    }
  }
  return true;
}

/// Values by place from `spread` on (-1: none) are one list.
bool place_all(lua_State* L, const Signature& signature, const CallArguments& call, int spread, Fit& out, std::string* why) {
  out.source.assign(signature.parameters.size(), Fit::kDefault);
  out.spread_from = spread;
  out.cost = 0;
  const int given = static_cast<int>(call.places.size());
  const int single = spread >= 0 ? spread : given;
  if (single > signature.positional) {
    if (why != nullptr) {
      *why = format("takes {} arguments by place, got {}; the others are keywords in a last table", signature.positional, given);
    }
    return false;
  }
  for (int i = 0; i < single; ++i) {
    if (!place(L, signature, static_cast<std::size_t>(i), call.places[static_cast<std::size_t>(i)], static_cast<std::int16_t>(i), out,
               why)) {
      return false;
    }
  }
  if (spread >= 0) {
    const bool tensors = signature.parameters[static_cast<std::size_t>(spread)].type.kind == Kind::tensor;
    const Type item = tensors ? Type::tensor : Type::integer;
    if (!std::all_of(call.places.begin() + spread, call.places.end(), [&](const Value& v) { return v.type == item; })) {
      return false;
    }
    out.source[static_cast<std::size_t>(spread)] = static_cast<std::int16_t>(spread);
    out.cost += 4;
  }
  if (!place_keywords(L, signature, call, out, why)) {
    return false;
  }
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const Slot& slot = signature.parameters[i];
    if (out.source[i] != Fit::kDefault || slot.fallback) {
      continue;
    }
    if (slot.type.optional) {  // left out, it is nil; an overload that does not ask for it comes first
      out.cost += 8;
      continue;
    }
    if (why != nullptr) {
      *why = format("argument '{}' ({}) is missing", slot.name, type_text(slot.type));
    }
    return false;
  }
  return true;
}

}  // namespace

Value value_at(lua_State* L, int index) {
  Value value;
  value.index = index;
  value.type = plain_type(L, index);
  if (value.type == Type::list) {
    look_into(L, value);
  }
  return value;
}

void CallArguments::read(lua_State* L, int first) {
  places.clear();
  keywords.clear();
  int last = lua_gettop(L);
  const int table = last;
  if (last >= first && is_keyword_table(L, last)) {
    --last;
    for (lua_pushnil(L); lua_next(L, table) != 0;) {  // leaves each key and value, goes on with a copy of the key
      KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "a table of keywords has names only, got the key {}", describe(L, -2));
      luaL_checkstack(L, 4, "too many keywords");
      keywords.push_back({lua_tostring(L, -2), value_at(L, lua_gettop(L))});
      lua_pushvalue(L, -2);
    }
  }
  for (int i = first; i <= last; ++i) {
    places.push_back(value_at(L, i));
  }
}

bool has_names(lua_State* L, int index, int length) {
  if (length > 0) {
    lua_pushinteger(L, length);
  } else {
    lua_pushnil(L);
  }
  if (lua_next(L, index) == 0) {
    return false;
  }
  lua_pop(L, 1);
  if (lua_type(L, -1) == LUA_TSTRING) {
    return true;
  }
  lua_pop(L, 1);
  return false;
}

void fit(lua_State* L, const Signature& signature, const CallArguments& call, Fit& out, std::string* why) {
  if (place_all(L, signature, call, -1, out, why)) {
    return;
  }
  const int list = signature.first_list;
  const bool spreadable = list >= 0 && static_cast<int>(call.places.size()) > list &&
                          (call.places[static_cast<std::size_t>(list)].type == Type::integer ||
                           call.places[static_cast<std::size_t>(list)].type == Type::tensor);
  if (spreadable && place_all(L, signature, call, list, out, nullptr)) {
    return;
  }
  if (call.places.size() > 1 && call.places.back().type == Type::list && call.places.back().length == 0) {
    CallArguments without = call;  // { dtype = x } where x is nil: keywords that say nothing
    without.places.pop_back();
    fit(L, signature, without, out, nullptr);
    out.cost += out.cost >= 0 ? 16 : 0;
    return;
  }
  out.cost = -1;
}

}  // namespace kf::lua
