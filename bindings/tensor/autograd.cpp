// t:backward(), kf.grad, kf.no_grad, gradient hooks: autograd as PyTorch has it, on the one thread that Lua runs on.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <new>
#include <vector>

#include "bindings/tensor/function.h"
#include "bindings/tensor/methods.h"
#include "bindings/tensor/tensor.h"
#include "bindings/tensor/weak_ref.h"
#include "bindings/vm/collect.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "model/single_threaded_backward.h"

namespace kf::lua {
namespace {

using Tensors = std::vector<at::Tensor>;

/// One tensor or a list of tensors; nil is none.
Tensors tensors_at(lua_State* L, int index, const char* function, const char* argument) {
  if (lua_isnoneornil(L, index)) {
    return {};
  }
  if (const at::Tensor* tensor = tensor_at(L, index)) {
    return {*tensor};
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: {} must be a tensor or a list of tensors, got {}", function, argument,
           describe(L, index));
  Tensors out;
  const int length = static_cast<int>(lua_objlen(L, index));
  for (int i = 1; i <= length; ++i) {
    lua_rawgeti(L, index, i);
    out.push_back(check_tensor(L, lua_gettop(L), function));
    lua_pop(L, 1);
  }
  return out;
}

struct Options {
  std::optional<bool> retain_graph;
  bool create_graph = false;
  bool allow_unused = false;
  Tensors grad_outputs;
};

Options read_options(lua_State* L, int index, const char* function) {
  Options out;
  if (lua_isnoneornil(L, index)) {
    return out;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table of options, got {}", function, describe(L, index));
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    const bool on = lua_toboolean(L, -1) != 0;
    if (key == "retain_graph") {
      out.retain_graph = on;
    } else if (key == "create_graph") {
      out.create_graph = on;
    } else if (key == "allow_unused") {
      out.allow_unused = on;
    } else if (key == "grad_outputs" || key == "gradient") {
      out.grad_outputs = tensors_at(L, lua_gettop(L), function, key.c_str());
    } else {
      fail(Code::script, "{}: no option '{}'{}", function, key,
           suggestion(key, {"retain_graph", "create_graph", "allow_unused", "grad_outputs", "gradient"}));
    }
  }
  return out;
}

/// kf.grad(outputs, inputs [, { grad_outputs, retain_graph, create_graph, allow_unused }]) -> one gradient for each input
int grad(lua_State* L) {
  const Tensors outputs = tensors_at(L, 1, "kf.grad", "outputs");
  const Tensors inputs = tensors_at(L, 2, "kf.grad", "inputs");
  const Options options = read_options(L, 3, "kf.grad");
  const Crossing crossing(L);
  const SingleThreadedBackward single;
  const Tensors gradients =
      torch::autograd::grad(outputs, inputs, options.grad_outputs, options.retain_graph, options.create_graph, options.allow_unused);
  luaL_checkstack(L, static_cast<int>(gradients.size()) + 2, "too many results");
  for (const at::Tensor& gradient : gradients) {
    push_tensor(L, gradient);
  }
  return static_cast<int>(gradients.size());
}

/// Calls function 1 with the rest while `Guard` exists; all its results are passed on.
template <class Guard, class... Args>
int call_guarded(lua_State* L, const char* name, Args... args) {
  KF_CHECK(is_callable(L, 1), Code::script, "{}: expected a function, got {}", name, describe(L, 1));
  const Guard guard(args...);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);  // a Lua error unwinds through here and runs the guard's destructor
  return lua_gettop(L);
}

int no_grad(lua_State* L) { return call_guarded<at::NoGradGuard>(L, "kf.no_grad"); }
int enable_grad(lua_State* L) { return call_guarded<at::AutoGradMode>(L, "kf.enable_grad", true); }

int is_grad_enabled(lua_State* L) {
  lua_pushboolean(L, at::GradMode::is_enabled());
  return 1;
}

// --- hooks on the gradient of a tensor ---

constexpr char kHandle[] = "kf.hook_handle";

struct Handle {
  at::Tensor tensor;
  unsigned position = 0;
};

int remove_hook(lua_State* L) {
  auto* handle = static_cast<Handle*>(luaL_checkudata(L, 1, kHandle));
  if (handle->tensor.defined()) {
    handle->tensor.remove_hook(handle->position);
    handle->tensor = at::Tensor();
  }
  return 0;
}

void push_handle(lua_State* L, const at::Tensor& tensor, unsigned position) {
  new (lua_newuserdata(L, sizeof(Handle))) Handle{tensor, position};
  if (luaL_newmetatable(L, kHandle) != 0) {
    lua_newtable(L);
    lua_pushcfunction(L, &guarded<remove_hook>);
    lua_setfield(L, -2, "remove");
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, collect<Handle>);
    lua_setfield(L, -2, "__gc");
    set(L, "__metatable", std::string_view("hook"));
  }
  lua_setmetatable(L, -2);
}

/// What the hook gives back in place of the gradient: nil leaves it.
at::Tensor call_hook(const WeakRef& function, const at::Tensor& gradient) {
  const std::shared_ptr<Runtime> runtime = function.runtime();
  lua_State* L = runtime->state();
  KF_CHECK(lua_checkstack(L, 8) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  function.push(L);
  push_tensor(L, gradient);
  runtime->call(1, 1);
  if (lua_isnil(L, -1)) {
    return {};
  }
  const at::Tensor* result = tensor_at(L, -1);
  KF_CHECK(result != nullptr, Code::script, "a gradient hook must return a tensor or nothing, got {}", describe(L, -1));
  return *result;
}

}  // namespace

/// t:backward([gradient] [, { retain_graph, create_graph }])
int backward(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t:backward");
  const int options_at = tensor_at(L, 2) != nullptr || lua_isnil(L, 2) ? 3 : 2;
  Options options = read_options(L, options_at, "t:backward");
  if (const at::Tensor* gradient = tensor_at(L, 2)) {
    options.grad_outputs = {*gradient};
  }
  KF_CHECK(tensor.requires_grad(), Code::script,
           "t:backward: nothing that this tensor was made of requires gradients; make a leaf with { requires_grad = true }");
  const Crossing crossing(L);
  const SingleThreadedBackward single;
  torch::autograd::backward({tensor}, options.grad_outputs, options.retain_graph, options.create_graph);
  return 0;
}

/// t:register_hook(f) -> a handle with :remove(). f(gradient) may return another gradient.
int register_hook(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t:register_hook");
  KF_CHECK(is_callable(L, 2), Code::script, "t:register_hook: expected a function, got {}", describe(L, 2));
  lua_settop(L, 2);
  const auto function = std::make_shared<WeakRef>(L);
  const unsigned position = tensor.register_hook([function](const at::Tensor& gradient) {
    at::Tensor result = call_hook(*function, gradient);
    return result.defined() ? result : gradient;
  });
  push_handle(L, tensor, position);
  return 1;
}

void add_autograd(lua_State* L) {
  const luaL_Reg functions[] = {{"grad", &guarded<grad>},
                                {"no_grad", &guarded<no_grad>},
                                {"enable_grad", &guarded<enable_grad>},
                                {"is_grad_enabled", &guarded<is_grad_enabled>},
                                {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
  lua_newtable(L);
  lua_pushcfunction(L, &guarded<make_function>);
  lua_setfield(L, -2, "fn");
  lua_setfield(L, -2, "autograd");
}

}  // namespace kf::lua
