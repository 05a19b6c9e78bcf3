#pragma once
// Fields and methods of tensors that the dispatcher does not have as operators.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf::lua {

/// Adds the methods to the table on top.
void add_methods(lua_State* L);
/// Pushes the field `name` of the tensor at index 1 (shape, dtype, grad, ...); false when there is no such field.
bool push_field(lua_State* L, std::string_view name);
/// t.name = value (index 3): grad, requires_grad. Throws for the others.
void set_field(lua_State* L, std::string_view name);

// --- index.cpp ---
/// t[key]: the key is at index 2.
int get_indexed(lua_State* L);
/// t[key] = value: at 2 and 3.
int set_indexed(lua_State* L);
/// Pushes kf.all, a whole dim in an index.
void push_all(lua_State* L);
/// t:iter() -> for i, row in t:iter() do ... end, i from 0.
int iterate(lua_State* L);

// --- convert.cpp ---
/// kf.tensor(data, { dtype, device, requires_grad })
int make_tensor(lua_State* L);
/// The numbers at `index` in (nested) lists. Without a type booleans make bool, numbers float32. Throws where one does not fit its type.
at::Tensor read_tensor(lua_State* L, int index, std::optional<at::ScalarType> type);
/// t:tolist(), t:item(), t:data_ptr()
int to_list(lua_State* L);
int item(lua_State* L);
int data_pointer(lua_State* L);
/// Keeps what data_ptr needs in the registry.
void open_data_pointer(lua_State* L);

// --- print.cpp ---
int tensor_to_text(lua_State* L);

// --- arithmetic.cpp ---
/// Adds __add, __sub, ... to the metatable on top.
void add_arithmetic(lua_State* L);

// --- factories.cpp ---
/// Adds kf.zeros, kf.randn, ... to the table on top.
void add_factories(lua_State* L);

// --- autograd.cpp ---
int backward(lua_State* L);
int register_hook(lua_State* L);
/// Adds kf.grad, kf.no_grad, kf.autograd, ... to the table on top.
void add_autograd(lua_State* L);

// --- files.cpp ---
/// The table { name = tensor } at `index`, sorted by name.
std::vector<std::pair<std::string, at::Tensor>> read_tensors(lua_State* L, int index, std::string_view where);
/// Adds kf.save_tensors, kf.load_tensors to the table on top.
void add_files(lua_State* L);

}  // namespace kf::lua
