// What operators return, as Lua values.

#include <ATen/ATen.h>

#include "bindings/tensor/names.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/operators.h"
#include "bindings/tensor/rng.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

template <class List, class Push>
void push_list(lua_State* L, const List& list, Push&& push_item) {
  lua_createtable(L, static_cast<int>(list.size()), 0);
  int number = 0;
  for (const auto& item : list) {
    push_item(item);
    lua_rawseti(L, -2, ++number);
  }
}

void push_complex(lua_State* L, c10::complex<double> value) {
  lua_createtable(L, 0, 2);
  set(L, "re", value.real());
  set(L, "im", value.imag());
}

void push_list(lua_State* L, const c10::IValue& value, bool fresh) {
  if (value.isTensorList()) {
    push_list(L, value.toTensorVector(), [&](const at::Tensor& t) { push_tensor(L, t, fresh ? Memory::fresh : Memory::shared); });
  } else if (value.isIntList()) {
    push_list(L, value.toIntVector(), [&](std::int64_t item) { push_wide(L, item); });
  } else if (value.isDoubleList()) {
    push_list(L, value.toDoubleVector(), [&](double item) { lua_pushnumber(L, item); });
  } else if (value.isBoolList()) {
    push_list(L, value.toBoolList(), [&](bool item) { lua_pushboolean(L, item); });
  } else {
    push_list(L, value.toListRef(), [&](const c10::IValue& item) { push_result(L, item, {}, fresh); });
  }
}

}  // namespace

void push_result(lua_State* L, const c10::IValue& value, const ArgumentType& type, bool fresh) {
  luaL_checkstack(L, 4, "too many results");
  if (value.isTensor()) {
    push_tensor(L, value.toTensor(), fresh ? Memory::fresh : Memory::shared);
  } else if (value.isInt() && type.kind == Kind::dtype) {
    push(L, name_of(static_cast<at::ScalarType>(value.toInt())));
  } else if (value.isInt() && type.kind == Kind::layout) {
    push(L, name_of(static_cast<at::Layout>(value.toInt())));
  } else if (value.isInt()) {
    push_wide(L, value.toInt());
  } else if (value.isSymInt()) {
    push_wide(L, value.toSymInt().expect_int());
  } else if (value.isDouble()) {
    lua_pushnumber(L, value.toDouble());
  } else if (value.isBool()) {
    lua_pushboolean(L, value.toBool());
  } else if (value.isComplexDouble()) {
    push_complex(L, value.toComplexDouble());
  } else if (value.isString()) {
    push(L, std::string_view(value.toStringRef()));
  } else if (value.isDevice()) {
    push(L, std::string_view(value.toDevice().str()));
  } else if (value.isGenerator()) {
    push_generator(L, value.toGenerator());
  } else if (value.isList()) {
    push_list(L, value, fresh);
  } else if (value.isNone()) {
    lua_pushnil(L);
  } else {
    fail(Code::script, "the result is a {}, which Lua has no value for", value.tagKind());
  }
}

}  // namespace kf::lua
