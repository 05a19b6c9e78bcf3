// What fitted arguments become: values of the dispatcher.

#include <ATen/ATen.h>

#include <algorithm>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/rng.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

using Type = Value::Type;

double number_at(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    return lua_tonumber(L, index);
  }
  if (const auto value = float_at(L, index)) {
    return *value;
  }
  return static_cast<double>(wide_integer_at(L, index).value_or(0));
}

std::int64_t integer_at(lua_State* L, int index) {
  return lua_type(L, index) == LUA_TNUMBER ? static_cast<std::int64_t>(lua_tonumber(L, index)) : wide_integer_at(L, index).value_or(0);
}

at::Scalar scalar_at(lua_State* L, int index, Type type) {
  switch (type) {
    case Type::boolean: return {lua_toboolean(L, index) != 0};
    case Type::integer: return {integer_at(L, index)};
    default: return {number_at(L, index)};
  }
}

c10::IValue item_value(lua_State* L, Kind kind, Type type, int index) {
  switch (kind) {
    case Kind::tensor: {
      if (const at::Tensor* tensor = tensor_at(L, index)) {
        return *tensor;
      }
      at::Tensor wrapped = at::scalar_tensor(scalar_at(L, index, type), type == Type::boolean   ? at::kBool
                                                                        : type == Type::integer ? at::kLong
                                                                                                : at::kDouble);
      wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
      return wrapped;
    }
    case Kind::integer: return integer_at(L, index);
    case Kind::reduction: return type == Type::text ? *reduction_named(text_at(L, index)) : integer_at(L, index);
    case Kind::real: return number_at(L, index);
    case Kind::boolean: return lua_toboolean(L, index) != 0;
    case Kind::scalar: return scalar_at(L, index, type);
    case Kind::text: return std::string(text_at(L, index));
    case Kind::dimname: return "dimname::" + std::string(text_at(L, index));
    case Kind::dtype: return static_cast<std::int64_t>(*dtype_named(text_at(L, index)));
    case Kind::layout: return static_cast<std::int64_t>(*layout_named(text_at(L, index)));
    case Kind::memory_format: return static_cast<std::int64_t>(*memory_format_named(text_at(L, index)));
    case Kind::device: return *device_named(text_at(L, index));
    case Kind::generator: return *generator_at(L, index);
    case Kind::unknown: break;
  }
  return {};
}

template <class T, class Read>
c10::IValue list_value(lua_State* L, const Value& value, Read&& read) {
  c10::List<T> out;
  out.reserve(static_cast<std::size_t>(value.length));
  for (int i = 1; i <= value.length; ++i) {
    lua_rawgeti(L, value.index, i);
    out.push_back(read(lua_gettop(L)));
    lua_pop(L, 1);
  }
  return out;
}

c10::IValue scalar_list(lua_State* L, const Value& value) {
  c10::impl::GenericList out(c10::NumberType::get());
  for (int i = 1; i <= value.length; ++i) {
    lua_rawgeti(L, value.index, i);
    const int item = lua_gettop(L);
    out.push_back(c10::IValue(scalar_at(L, item, value_at(L, item).type)));
    lua_pop(L, 1);
  }
  return out;
}

c10::IValue list_value(lua_State* L, const ArgumentType& type, const Value& value) {
  switch (type.kind) {
    case Kind::tensor:
      if (type.optional_elements) {
        return list_value<std::optional<at::Tensor>>(L, value, [&](int i) {
          const at::Tensor* tensor = tensor_at(L, i);
          return tensor != nullptr ? std::optional<at::Tensor>(*tensor) : std::nullopt;
        });
      }
      return list_value<at::Tensor>(L, value, [&](int i) { return *tensor_at(L, i); });
    case Kind::integer: return list_value<std::int64_t>(L, value, [&](int i) { return integer_at(L, i); });
    case Kind::real: return list_value<double>(L, value, [&](int i) { return number_at(L, i); });
    case Kind::boolean: return list_value<bool>(L, value, [&](int i) { return lua_toboolean(L, i) != 0; });
    case Kind::text:
    case Kind::dimname:
      return list_value<std::string>(L, value,
                                     [&](int i) { return (type.kind == Kind::dimname ? "dimname::" : "") + std::string(text_at(L, i)); });
    case Kind::scalar: return scalar_list(L, value);
    default: fail(Code::script, "lists of {} cannot be given from Lua", type_text(type));
  }
}

/// One number for a list of `size`.
c10::IValue repeated(lua_State* L, const ArgumentType& type, const Value& value) {
  const auto size = static_cast<std::size_t>(type.size);
  if (type.kind == Kind::real) {
    return std::vector<double>(size, number_at(L, value.index));
  }
  return std::vector<std::int64_t>(size, integer_at(L, value.index));
}

c10::IValue spread_value(lua_State* L, const ArgumentType& type, const CallArguments& call, int from) {
  if (type.kind == Kind::tensor) {
    c10::List<at::Tensor> tensors;
    for (std::size_t i = static_cast<std::size_t>(from); i < call.places.size(); ++i) {
      tensors.push_back(*tensor_at(L, call.places[i].index));
    }
    return tensors;
  }
  c10::List<std::int64_t> out;
  for (std::size_t i = static_cast<std::size_t>(from); i < call.places.size(); ++i) {
    out.push_back(integer_at(L, call.places[i].index));
  }
  return out;
}

c10::IValue argument_value(lua_State* L, const ArgumentType& type, const Value& value) {
  if (value.type == Type::nil) {
    return {};
  }
  if (type.list) {
    return value.type == Type::list ? list_value(L, type, value) : repeated(L, type, value);
  }
  return item_value(L, type.kind, value.type, value.index);
}

}  // namespace

void convert(lua_State* L, const Signature& signature, const CallArguments& call, const Fit& fit, std::vector<c10::IValue>& stack) {
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const std::int16_t source = fit.source[i];
    const ArgumentType& type = signature.parameters[i].type;
    if (source == Fit::kDefault) {
      const auto& fallback = signature.handle.schema().arguments()[i].default_value();
      stack.push_back(fallback ? *fallback : c10::IValue());
    } else if (source == fit.spread_from && static_cast<int>(i) == fit.spread_from) {
      stack.push_back(spread_value(L, type, call, fit.spread_from));
    } else if (source >= Fit::kOutItem) {
      const auto list =
          std::find_if(call.keywords.begin(), call.keywords.end(), [](const Keyword& k) { return k.name == std::string_view("out"); });
      lua_rawgeti(L, list->value.index, source - Fit::kOutItem + 1);
      stack.emplace_back(*tensor_at(L, lua_gettop(L)));
      lua_pop(L, 1);
    } else if (source >= Fit::kKeyword) {
      stack.push_back(argument_value(L, type, call.keywords[static_cast<std::size_t>(source - Fit::kKeyword)].value));
    } else {
      stack.push_back(argument_value(L, type, call.places[static_cast<std::size_t>(source)]));
    }
  }
}

}  // namespace kf::lua
