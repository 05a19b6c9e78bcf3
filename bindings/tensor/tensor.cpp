#include "bindings/tensor/tensor.h"

#include <ATen/ATen.h>

#include <new>

#include "bindings/tensor/memory.h"
#include "bindings/tensor/methods.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/operators.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

constexpr int kMetatable = -0x6b66;  // its place in the registry: luaL_ref gives positive numbers only

void push_box(lua_State* L, at::Tensor tensor, std::int64_t bytes, std::shared_ptr<const Lease> lease) {
  auto* box = new (lua_newuserdata(L, sizeof(TensorBox))) TensorBox();
  box->tensor = std::move(tensor);
  box->bytes = bytes;
  box->lease = std::move(lease);
  lua_rawgeti(L, LUA_REGISTRYINDEX, kMetatable);
  lua_setmetatable(L, -2);
}

std::int64_t bytes_of(const at::Tensor& tensor) { return tensor.has_storage() ? static_cast<std::int64_t>(tensor.storage().nbytes()) : 0; }

int collect(lua_State* L) {
  TensorBox* const box = box_at(L, 1);
  if (box == nullptr) {
    return 0;  // called by hand, as debug.getmetatable lets scripts
  }
  if (box->bytes > 0) {
    account_release(box->bytes);
  }
  box->~TensorBox();
  box->magic = 0;  // no tensor any more, should it be used or collected again
  return 0;
}

/// The names that t.name may have, for suggestions.
std::vector<std::string> known_names(lua_State* L) {
  std::vector<std::string> names = {"shape", "dtype", "device", "layout", "ndim", "grad", "requires_grad", "is_leaf", "nbytes", "itemsize"};
  for (lua_pushnil(L); lua_next(L, lua_upvalueindex(1)) != 0; lua_pop(L, 1)) {
    names.emplace_back(lua_tostring(L, -2));
  }
  for (const std::string& name : operator_names()) {
    if (name.front() != '_') {
      names.push_back(name);
    }
  }
  return names;
}

/// t.name, t[index]. Upvalue 1: the methods, to which operators are added as they are first used.
int tensor_index(lua_State* L) {
  if (lua_type(L, 2) != LUA_TSTRING) {
    return get_indexed(L);
  }
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  if (!lua_isnil(L, -1)) {
    return 1;
  }
  std::size_t size = 0;
  const char* text = lua_tolstring(L, 2, &size);
  const std::string name(text, size);
  if (push_field(L, name)) {
    return 1;
  }
  const Operator* op = find_operator(name);
  if (op == nullptr || !op->method) {
    const std::string near = nearest(name, known_names(L));
    fail(Code::script, "tensors have no method or field '{}'{}", name, near.empty() ? "" : "; did you mean '" + near + "'?");
  }
  push_operator(L, *op);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, -2);
  lua_rawset(L, lua_upvalueindex(1));
  return 1;
}

int tensor_newindex(lua_State* L) {
  if (lua_type(L, 2) != LUA_TSTRING) {
    return set_indexed(L);
  }
  set_field(L, lua_tostring(L, 2));
  return 0;
}

}  // namespace

void push_tensor(lua_State* L, at::Tensor tensor, Memory memory) {
  if (!tensor.defined()) {
    lua_pushnil(L);
    return;
  }
  const std::int64_t bytes = memory == Memory::fresh ? bytes_of(tensor) : 0;
  if (bytes > 0) {
    account_allocation(L, bytes);
  }
  push_box(L, std::move(tensor), bytes, nullptr);
}

void push_lent(lua_State* L, at::Tensor tensor, const std::shared_ptr<Lease>& lease) {
  if (!tensor.defined()) {
    lua_pushnil(L);
    return;
  }
  push_box(L, std::move(tensor), 0, lease);
}

const at::Tensor& usable(const TensorBox& box) {
  if (box.lease && box.lease->over) [[unlikely]] {
    fail(Code::script, "this tensor was lent with {}, which are over; clone() it where it is given to keep it", box.lease->what);
  }
  if (!box.tensor.defined()) [[unlikely]] {
    fail(Code::script, "this tensor was freed");
  }
  return box.tensor;
}

const at::Tensor& check_tensor(lua_State* L, int index, std::string_view function) {
  const at::Tensor* tensor = tensor_at(L, index);
  KF_CHECK(tensor != nullptr, Code::script, "{}: expected a tensor, got {}", function, describe(L, index));
  return *tensor;
}

bool has_method(lua_State* L, const std::string& name) {
  const StackTop top(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, kMetatable);
  lua_getfield(L, -1, "__index");
  lua_getupvalue(L, -1, 1);  // the methods
  push(L, std::string_view(name));
  lua_rawget(L, -2);
  return !lua_isnil(L, -1);
}

int free_tensor(lua_State* L) {
  TensorBox* box = box_at(L, 1);
  KF_CHECK(box != nullptr, Code::script, "t:free: expected a tensor, got {}", describe(L, 1));
  KF_CHECK(!box->lease, Code::script, "t:free: this tensor is lent, it belongs to the host");
  account_release(box->bytes);
  box->bytes = 0;
  box->tensor = at::Tensor();
  return 0;
}

void open_tensors(lua_State* L) {
  lua_newtable(L);
  lua_newtable(L);
  add_methods(L);
  lua_pushcclosure(L, &guarded<tensor_index>, 1);
  lua_setfield(L, -2, "__index");
  const luaL_Reg own[] = {
      {"__newindex", &guarded<tensor_newindex>}, {"__tostring", &guarded<tensor_to_text>}, {"__gc", collect}, {nullptr, nullptr}};
  luaL_register(L, nullptr, own);
  add_arithmetic(L);
  set(L, "__metatable", std::string_view("tensor"));
  lua_rawseti(L, LUA_REGISTRYINDEX, kMetatable);
}

std::string tensor_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.sizes()) {
    sizes.push_back(to_text(size));
  }
  return format("{} {}", name_of(tensor.scalar_type()), sizes.empty() ? "scalar" : "(" + join(sizes, ", ") + ")");
}

std::string describe_any(lua_State* L, int index) {
  const TensorBox* box = box_at(L, index);
  if (box == nullptr) {
    return describe(L, index);
  }
  return box->tensor.defined() ? "tensor " + tensor_text(box->tensor) : "a freed tensor";
}

}  // namespace kf::lua
