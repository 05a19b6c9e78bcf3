// t[i], t[{ {0, 4}, kf.all, 2 }], t[mask], t[index], and assignment through the same forms: PyTorch's rules, counted from 0.

#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include <vector>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/methods.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

using at::indexing::Slice;
using at::indexing::TensorIndex;

constexpr char kAll[] = "kf.all";

bool is_all(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA) {
    return false;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, kAll);
  const bool same = lua_rawequal(L, -1, index < 0 ? index - 1 : index) != 0;
  lua_pop(L, 1);
  return same;
}

std::optional<std::int64_t> integer_at(lua_State* L, int index) {
  const auto plain = exact_integer(L, index);
  return plain ? plain : wide_integer_at(L, index);
}

/// { first, last [, step] }; { first } goes to the end.
Slice range_at(lua_State* L, int index) {
  const int length = static_cast<int>(lua_objlen(L, index));
  KF_CHECK(length >= 1 && length <= 3, Code::script,
           "a range in an index is { first, behind_last } or { first, behind_last, step }, got a table of {} items", length);
  std::optional<c10::SymInt> part[3];
  for (int i = 0; i < length; ++i) {
    lua_rawgeti(L, index, i + 1);
    if (!lua_isnil(L, -1) && !is_all(L, lua_gettop(L))) {
      const auto value = integer_at(L, lua_gettop(L));
      KF_CHECK(value.has_value(), Code::script, "a range in an index holds whole numbers, got {}", describe_any(L, -1));
      part[i] = c10::SymInt(*value);
    }
    lua_pop(L, 1);
  }
  KF_CHECK(!part[2] || part[2]->expect_int() > 0, Code::script, "the step of a range must be above 0; use flip for the other way");
  return Slice(part[0], part[1], part[2]);
}

TensorIndex item_at(lua_State* L, int index) {
  if (const auto integer = integer_at(L, index)) {
    return {*integer};
  }
  if (const at::Tensor* tensor = tensor_at(L, index)) {
    return {*tensor};
  }
  if (is_all(L, index)) {
    return {Slice()};
  }
  if (lua_istable(L, index)) {
    return {range_at(L, index)};
  }
  if (lua_type(L, index) == LUA_TBOOLEAN) {
    return {lua_toboolean(L, index) != 0};
  }
  if (lua_type(L, index) == LUA_TSTRING && lua_tostring(L, index) == std::string_view("...")) {
    return {at::indexing::Ellipsis};
  }
  if (lua_type(L, index) == LUA_TSTRING && lua_tostring(L, index) == std::string_view("new")) {
    return {std::nullopt};
  }
  fail(Code::script, "an index is a whole number, a range { first, behind_last }, kf.all, \"...\", \"new\" or a tensor, got {}",
       describe_any(L, index));
}

std::vector<TensorIndex> key_at(lua_State* L, int index) {
  if (!lua_istable(L, index)) {
    return {item_at(L, index)};
  }
  std::vector<TensorIndex> items;
  const int length = static_cast<int>(lua_objlen(L, index));
  KF_CHECK(length > 0, Code::script, "an index table names each dim, { 0, { 0, 4 }, kf.all }; this one is empty");
  for (int i = 1; i <= length; ++i) {
    lua_rawgeti(L, index, i);
    items.push_back(item_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  return items;
}

/// LibTorch's message in one line.
[[noreturn]] void fail_indexing(const at::Tensor& tensor, const c10::Error& error) {
  std::string text = error.what_without_backtrace();
  fail(Code::script, "{}\n  given a tensor {}", text.substr(0, text.find('\n')), tensor_text(tensor));
}

int next_row(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t:iter");
  const std::int64_t row = exact_integer(L, 2).value_or(-1) + 1;
  if (row < 0 || row >= tensor.size(0)) {
    return 0;
  }
  lua_pushnumber(L, static_cast<double>(row));
  push_tensor(L, tensor.select(0, row));
  return 2;
}

int all_text(lua_State* L) {
  lua_pushliteral(L, "kf.all");
  return 1;
}

}  // namespace

int get_indexed(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t[...]");
  const std::vector<TensorIndex> key = key_at(L, 2);
  try {
    push_tensor(L, tensor.index(key));
  } catch (const c10::Error& error) {
    fail_indexing(tensor, error);
  }
  return 1;
}

int set_indexed(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t[...]");
  const std::vector<TensorIndex> key = key_at(L, 2);
  const Value value = value_at(L, 3);
  try {
    if (value.type == Value::Type::tensor) {
      at::Tensor(tensor).index_put_(key, *tensor_at(L, 3));
    } else if (value.type == Value::Type::list) {
      at::Tensor(tensor).index_put_(key, read_tensor(L, 3, tensor.scalar_type()).to(tensor.device()));
    } else if (value.type == Value::Type::boolean) {
      at::Tensor(tensor).index_put_(key, at::Scalar(lua_toboolean(L, 3) != 0));
    } else if (const auto integer = integer_at(L, 3)) {
      at::Tensor(tensor).index_put_(key, at::Scalar(*integer));
    } else {
      const auto real = float_at(L, 3);
      KF_CHECK(real || lua_type(L, 3) == LUA_TNUMBER, Code::script,
               "what is assigned to t[...] must be a number, a boolean, a list or a tensor, got {}", describe_any(L, 3));
      const double value_given = real ? *real : lua_tonumber(L, 3);
      if (tensor.scalar_type() == at::kLong) {
        check_int64(value_given, "t[...]");
      }
      at::Tensor(tensor).index_put_(key, at::Scalar(value_given));
    }
  } catch (const c10::Error& error) {
    fail_indexing(tensor, error);
  }
  return 0;
}

void push_all(lua_State* L) {
  lua_newuserdata(L, 1);
  lua_newtable(L);
  lua_pushcfunction(L, all_text);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, kAll);
}

int iterate(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t:iter");
  KF_CHECK(tensor.dim() > 0, Code::script, "t:iter: a tensor without dims has no rows");
  lua_pushcfunction(L, &guarded<next_row>);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

}  // namespace kf::lua
