#include "bindings/tensor/methods.h"

#include <ATen/ATen.h>

#include <map>

#include "bindings/tensor/arguments.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/operators.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

const at::Tensor& self(lua_State* L, const char* method) {
  const at::Tensor* tensor = tensor_at(L, 1);
  KF_CHECK(tensor != nullptr, Code::script, "t:{}: call it with a colon on a tensor, got {}", method, describe(L, 1));
  return *tensor;
}

std::int64_t dim_at(lua_State* L, int index, const at::Tensor& tensor, const char* method) {
  const auto dim = exact_integer(L, index);
  const std::int64_t dims = tensor.dim();
  KF_CHECK(dim && *dim >= -dims && *dim < dims, Code::script, "t:{}: expected a dim from {} to {}, got {}", method, -dims, dims - 1,
           describe(L, index));
  return *dim < 0 ? *dim + dims : *dim;
}

int push_numbers(lua_State* L, at::IntArrayRef numbers) {
  luaL_checkstack(L, static_cast<int>(numbers.size()) + 2, "too many dims");
  for (const std::int64_t number : numbers) {
    lua_pushnumber(L, static_cast<double>(number));
  }
  return static_cast<int>(numbers.size());
}

int size(lua_State* L) {
  const at::Tensor& tensor = self(L, "size");
  if (lua_isnoneornil(L, 2)) {
    return push_numbers(L, tensor.sizes());
  }
  lua_pushnumber(L, static_cast<double>(tensor.size(dim_at(L, 2, tensor, "size"))));
  return 1;
}

int stride(lua_State* L) {
  const at::Tensor& tensor = self(L, "stride");
  if (lua_isnoneornil(L, 2)) {
    return push_numbers(L, tensor.strides());
  }
  lua_pushnumber(L, static_cast<double>(tensor.stride(dim_at(L, 2, tensor, "stride"))));
  return 1;
}

int dim(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(self(L, "dim").dim()));
  return 1;
}

int numel(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(self(L, "numel").numel()));
  return 1;
}

int element_size(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(self(L, "element_size").element_size()));
  return 1;
}

int storage_offset(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(self(L, "storage_offset").storage_offset()));
  return 1;
}

int is_contiguous(lua_State* L) {
  lua_pushboolean(L, self(L, "is_contiguous").is_contiguous());
  return 1;
}

/// The result of a conversion: the same userdata where nothing had to be converted.
int push_converted(lua_State* L, const at::Tensor& from, at::Tensor to) {
  if (to.is_same(from)) {
    lua_pushvalue(L, 1);
  } else {
    push_tensor(L, std::move(to), Memory::fresh);
  }
  return 1;
}

template <at::ScalarType type>
int convert_to(lua_State* L) {
  const at::Tensor& tensor = self(L, name_of(type).data());
  return push_converted(L, tensor, tensor.to(type));
}

int to_cpu(lua_State* L) {
  const at::Tensor& tensor = self(L, "cpu");
  return push_converted(L, tensor, tensor.cpu());
}

int to_cuda(lua_State* L) {
  const at::Tensor& tensor = self(L, "cuda");
  return push_converted(L, tensor, tensor.to(at::Device(at::kCUDA)));
}

bool flag(lua_State* L, int table, const char* name) {
  lua_getfield(L, table, name);
  const bool on = lua_toboolean(L, -1) != 0;
  lua_pop(L, 1);
  return on;
}

/// One word of t:to: a dtype, a device, or a tensor whose both are taken.
void read_target(lua_State* L, int index, at::TensorOptions& options) {
  if (const at::Tensor* like = tensor_at(L, index)) {
    options = options.dtype(like->scalar_type()).device(like->device());
    return;
  }
  const std::string word = check_text(L, index, "t:to", "a dtype, a device or a tensor");
  if (const auto device = device_named(word)) {
    options = options.device(*device);
  } else {
    options = options.dtype(check_dtype(word, "t:to"));
  }
}

/// t:to(dtype | device | tensor [, dtype] [, { dtype, device, copy, non_blocking }])
int to(lua_State* L) {
  const at::Tensor& tensor = self(L, "to");
  at::TensorOptions options = tensor.options();
  bool copy = false;
  bool non_blocking = false;
  const int last = lua_gettop(L);
  for (int i = 2; i <= last; ++i) {
    if (!lua_istable(L, i)) {
      read_target(L, i, options);
      continue;
    }
    for (const char* name : {"device", "dtype"}) {
      lua_getfield(L, i, name);
      if (!lua_isnil(L, -1)) {
        read_target(L, lua_gettop(L), options);
      }
      lua_pop(L, 1);
    }
    copy = flag(L, i, "copy");
    non_blocking = flag(L, i, "non_blocking");
  }
  return push_converted(L, tensor, tensor.to(options.device(), at::typeMetaToScalarType(options.dtype()), non_blocking, copy));
}

int type(lua_State* L) {
  push(L, name_of(self(L, "type").scalar_type()));
  return 1;
}

/// t:requires_grad_([on])
int requires_grad_(lua_State* L) {
  const at::Tensor tensor = self(L, "requires_grad_");
  tensor.set_requires_grad(lua_isnoneornil(L, 2) || lua_toboolean(L, 2) != 0);
  lua_settop(L, 1);
  return 1;
}

/// t:where(condition, other): aten has the condition first.
int where(lua_State* L) {
  self(L, "where");
  KF_CHECK(tensor_at(L, 2) != nullptr, Code::script, "t:where: expected a condition (a bool tensor) first, got {}", describe(L, 2));
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 1);
  lua_replace(L, 2);
  lua_replace(L, 1);
  return call_operator(L, *find_operator("where"), 1);
}

/// t:unique([sorted, return_inverse, return_counts]) as torch.unique without a dim.
int unique(lua_State* L) {
  const at::Tensor& tensor = self(L, "unique");
  const bool options = lua_istable(L, 2);
  const bool sorted = options ? (lua_getfield(L, 2, "sorted"), lua_isnil(L, -1) || lua_toboolean(L, -1)) : true;
  const bool inverse = options && flag(L, 2, "return_inverse");
  const bool counts = options && flag(L, 2, "return_counts");
  auto [values, back, number] = at::_unique2(tensor, sorted, inverse, counts);
  push_tensor(L, values, Memory::fresh);
  if (inverse) {
    push_tensor(L, back, Memory::fresh);
  }
  if (counts) {
    push_tensor(L, number, Memory::fresh);
  }
  return 1 + inverse + counts;
}

// --- fields ---

void push_shape(lua_State* L, const at::Tensor& tensor) {
  lua_createtable(L, static_cast<int>(tensor.dim()), 0);
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    lua_pushnumber(L, static_cast<double>(tensor.size(i)));
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

using Getter = void (*)(lua_State*, const at::Tensor&);

const std::map<std::string, Getter, std::less<>>& fields() {
  static const std::map<std::string, Getter, std::less<>> all = {
      {"shape", push_shape},
      {"dtype", [](lua_State* L, const at::Tensor& t) { push(L, name_of(t.scalar_type())); }},
      {"device", [](lua_State* L, const at::Tensor& t) { push(L, std::string_view(t.device().str())); }},
      {"layout", [](lua_State* L, const at::Tensor& t) { push(L, name_of(t.layout())); }},
      {"ndim", [](lua_State* L, const at::Tensor& t) { lua_pushnumber(L, static_cast<double>(t.dim())); }},
      {"grad", [](lua_State* L, const at::Tensor& t) { push_tensor(L, t.grad()); }},
      {"requires_grad", [](lua_State* L, const at::Tensor& t) { lua_pushboolean(L, t.requires_grad()); }},
      {"is_leaf", [](lua_State* L, const at::Tensor& t) { lua_pushboolean(L, t.is_leaf()); }},
      {"is_cuda", [](lua_State* L, const at::Tensor& t) { lua_pushboolean(L, t.is_cuda()); }},
      {"is_sparse", [](lua_State* L, const at::Tensor& t) { lua_pushboolean(L, t.is_sparse()); }},
      {"itemsize", [](lua_State* L, const at::Tensor& t) { lua_pushnumber(L, static_cast<double>(t.element_size())); }},
      {"nbytes", [](lua_State* L, const at::Tensor& t) { lua_pushnumber(L, static_cast<double>(t.nbytes())); }},
      {"data", [](lua_State* L, const at::Tensor& t) { push_tensor(L, t.detach()); }},
      {"T", [](lua_State* L, const at::Tensor& t) { push_tensor(L, t.numpy_T()); }},
      {"mT", [](lua_State* L, const at::Tensor& t) { push_tensor(L, t.mT()); }},
      {"H", [](lua_State* L, const at::Tensor& t) { push_tensor(L, t.matrix_H()); }},
      {"mH", [](lua_State* L, const at::Tensor& t) { push_tensor(L, t.mH()); }},
      {"real", [](lua_State* L, const at::Tensor& t) { push_tensor(L, at::real(t)); }},
      {"imag", [](lua_State* L, const at::Tensor& t) { push_tensor(L, at::imag(t)); }},
  };
  return all;
}

}  // namespace

bool push_field(lua_State* L, std::string_view name) {
  const auto found = fields().find(name);
  if (found == fields().end()) {
    return false;
  }
  found->second(L, check_tensor(L, 1, name));
  return true;
}

void set_field(lua_State* L, std::string_view name) {
  const at::Tensor tensor = check_tensor(L, 1, name);
  if (name == "requires_grad") {
    KF_CHECK(lua_type(L, 3) == LUA_TBOOLEAN, Code::script, "t.requires_grad must be true or false, got {}", describe(L, 3));
    tensor.set_requires_grad(lua_toboolean(L, 3) != 0);
    return;
  }
  KF_CHECK(name == "grad", Code::script, "t.{} cannot be set; t.grad and t.requires_grad can", name);
  if (lua_isnil(L, 3)) {
    tensor.mutable_grad() = at::Tensor();
    return;
  }
  const at::Tensor& gradient = check_tensor(L, 3, "t.grad");
  KF_CHECK(gradient.sizes() == tensor.sizes(), Code::script, "t.grad: a gradient {} does not fit the tensor {}", tensor_text(gradient),
           tensor_text(tensor));
  tensor.mutable_grad() = gradient;
}

void add_methods(lua_State* L) {
  const luaL_Reg methods[] = {{"size", &guarded<size>},
                              {"stride", &guarded<stride>},
                              {"dim", &guarded<dim>},
                              {"ndimension", &guarded<dim>},
                              {"numel", &guarded<numel>},
                              {"nelement", &guarded<numel>},
                              {"element_size", &guarded<element_size>},
                              {"storage_offset", &guarded<storage_offset>},
                              {"is_contiguous", &guarded<is_contiguous>},
                              {"float", &guarded<convert_to<at::kFloat>>},
                              {"double", &guarded<convert_to<at::kDouble>>},
                              {"half", &guarded<convert_to<at::kHalf>>},
                              {"bfloat16", &guarded<convert_to<at::kBFloat16>>},
                              {"long", &guarded<convert_to<at::kLong>>},
                              {"int", &guarded<convert_to<at::kInt>>},
                              {"short", &guarded<convert_to<at::kShort>>},
                              {"char", &guarded<convert_to<at::kChar>>},
                              {"byte", &guarded<convert_to<at::kByte>>},
                              {"bool", &guarded<convert_to<at::kBool>>},
                              {"cpu", &guarded<to_cpu>},
                              {"cuda", &guarded<to_cuda>},
                              {"to", &guarded<to>},
                              {"type", &guarded<type>},
                              {"requires_grad_", &guarded<requires_grad_>},
                              {"where", &guarded<where>},
                              {"unique", &guarded<unique>},
                              {"tolist", &guarded<to_list>},
                              {"item", &guarded<item>},
                              {"data_ptr", &guarded<data_pointer>},
                              {"iter", &guarded<iterate>},
                              {"free", &guarded<free_tensor>},
                              {"backward", &guarded<backward>},
                              {"register_hook", &guarded<register_hook>},
                              {nullptr, nullptr}};
  luaL_register(L, nullptr, methods);
}

}  // namespace kf::lua
