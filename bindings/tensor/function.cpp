#include "bindings/tensor/function.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <vector>

#include "bindings/tensor/tensor.h"
#include "bindings/tensor/weak_ref.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr char kSaved[] = "kf.saved";        // ctx[kSaved]: list of tensors, with n
constexpr char kConstant[] = "kf.constant";  // ctx[kConstant]: outputs without gradient
constexpr char kContext[] = "kf.autograd.ctx";

/// The Lua half of one node: lives as long as the graph.
struct LuaNode : torch::CustomClassHolder {
  LuaNode(lua_State* L, int definition, int context) : arguments(0) {
    lua_getfield(L, definition, "backward");
    backward = std::make_unique<WeakRef>(L);
    lua_pushvalue(L, context);
    ctx = std::make_unique<WeakRef>(L);
  }
  std::unique_ptr<WeakRef> backward;
  std::unique_ptr<WeakRef> ctx;
  std::size_t arguments;               // of the Lua call
  std::vector<std::size_t> tensor_at;  // which of them are tensors
};

/// One call of the function: where its values lie on the stack.
struct Invocation {
  lua_State* L;
  int definition;
  int context;
  int first;  // argument
  int count;
  c10::intrusive_ptr<LuaNode> node;
};

/// ctx[key] = tensors from `from` to the top, which they leave.
void store_list(lua_State* L, int context, const char* key, int from) {
  const int count = lua_gettop(L) - from + 1;
  lua_createtable(L, count, 1);
  lua_insert(L, from);
  for (int i = count; i >= 1; --i) {
    lua_rawseti(L, from, i);
  }
  set(L, "n", static_cast<double>(count));
  lua_setfield(L, context, key);
}

std::vector<at::Tensor> stored_list(lua_State* L, int context, const char* key) {
  std::vector<at::Tensor> out;
  lua_getfield(L, context, key);
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "n");
    const int count = static_cast<int>(lua_tonumber(L, -1));
    lua_pop(L, 1);
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(L, -1, i);
      const at::Tensor* tensor = tensor_at(L, -1);
      out.push_back(tensor != nullptr ? *tensor : at::Tensor());
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
  return out;
}

void forget(lua_State* L, int context, const char* key) {
  lua_pushnil(L);
  lua_setfield(L, context, key);
}

int ctx_save(lua_State* L) {
  KF_CHECK(lua_istable(L, 1), Code::script, "ctx:save: call it with a colon, ctx:save(x, y)");
  for (int i = 2; i <= lua_gettop(L); ++i) {
    KF_CHECK(lua_isnil(L, i) || tensor_at(L, i) != nullptr, Code::script,
             "ctx:save: only tensors need saving, got {}; keep other values as fields, ctx.n = 3", describe(L, i));
  }
  store_list(L, 1, kSaved, 2);
  return 0;
}

int ctx_saved(lua_State* L) {
  KF_CHECK(lua_istable(L, 1), Code::script, "ctx:saved: call it with a colon, ctx:saved()");
  lua_getfield(L, 1, kSaved);
  KF_CHECK(lua_istable(L, -1), Code::script, "ctx:saved: forward has saved nothing; call ctx:save(x, ...) there");
  lua_getfield(L, -1, "n");
  const int count = static_cast<int>(lua_tonumber(L, -1));
  lua_pop(L, 1);
  luaL_checkstack(L, count + 2, "too many saved tensors");
  const int list = lua_gettop(L);
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(L, list, i);
  }
  return count;
}

int ctx_mark_non_differentiable(lua_State* L) {
  KF_CHECK(lua_istable(L, 1), Code::script, "ctx:mark_non_differentiable: call it with a colon");
  for (int i = 2; i <= lua_gettop(L); ++i) {
    check_tensor(L, i, "ctx:mark_non_differentiable");
  }
  store_list(L, 1, kConstant, 2);
  return 0;
}

void push_context(lua_State* L) {
  lua_newtable(L);
  if (luaL_newmetatable(L, kContext) != 0) {
    const luaL_Reg methods[] = {{"save", &guarded<ctx_save>},
                                {"saved", &guarded<ctx_saved>},
                                {"mark_non_differentiable", &guarded<ctx_mark_non_differentiable>},
                                {nullptr, nullptr}};
    lua_newtable(L);
    luaL_register(L, nullptr, methods);
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
}

/// The results of a call as tensors, those above `base`; nil gives an undefined one where `may_miss`.
variable_list results_above(lua_State* L, int base, const char* what, bool may_miss) {
  variable_list out;
  for (int i = base + 1; i <= lua_gettop(L); ++i) {
    const at::Tensor* tensor = tensor_at(L, i);
    KF_CHECK(tensor != nullptr || (may_miss && lua_isnil(L, i)), Code::script, "kf.autograd.fn: {} must return tensors, result {} is {}",
             what, i - base, describe(L, i));
    out.push_back(tensor != nullptr ? *tensor : at::Tensor());
  }
  return out;
}

struct LuaFunction : torch::autograd::Function<LuaFunction> {
  static variable_list forward(AutogradContext* context, Invocation* call, at::TensorList /*inputs*/) {
    lua_State* L = call->L;
    const int base = lua_gettop(L);
    luaL_checkstack(L, call->count + 8, "too many arguments");
    lua_getfield(L, call->definition, "forward");
    lua_pushvalue(L, call->context);
    for (int i = 0; i < call->count; ++i) {
      lua_pushvalue(L, call->first + i);
    }
    Runtime::of(L).call(call->count + 1, LUA_MULTRET);
    variable_list outputs = results_above(L, base, "forward", false);
    KF_CHECK(!outputs.empty(), Code::script, "kf.autograd.fn: forward must return a tensor, it returned nothing");
    lua_settop(L, base);
    context->save_for_backward(stored_list(L, call->context, kSaved));
    context->mark_non_differentiable(stored_list(L, call->context, kConstant));
    forget(L, call->context, kSaved);  // the graph keeps them; a cycle through ctx would never be freed
    forget(L, call->context, kConstant);
    context->saved_data["lua"] = c10::IValue::make_capsule(call->node);
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto node = c10::static_intrusive_pointer_cast<LuaNode>(context->saved_data["lua"].toCapsule());
    const std::shared_ptr<Runtime> runtime = node->ctx->runtime();
    const variable_list saved = context->get_saved_variables();
    variable_list out(node->tensor_at.size() + 1);  // the invocation itself is argument 0
    lua_State* L = runtime->state();
    const StackTop top(L);
    KF_CHECK(lua_checkstack(L, static_cast<int>(gradients.size() + saved.size()) + 16) != 0, Code::script, "Lua: stack overflow");
    const int base = lua_gettop(L);
    node->backward->push(L);
    node->ctx->push(L);
    const int ctx = lua_gettop(L);
    for (const at::Tensor& tensor : saved) {
      push_tensor(L, tensor);
    }
    store_list(L, ctx, kSaved, ctx + 1);
    for (const at::Tensor& gradient : gradients) {
      push_tensor(L, gradient);
    }
    runtime->call(static_cast<int>(gradients.size()) + 1, LUA_MULTRET);
    const variable_list results = results_above(L, base, "backward", true);
    KF_CHECK(results.size() <= node->arguments, Code::script, "kf.autograd.fn: backward returned {} gradients for {} arguments of forward",
             results.size(), node->arguments);
    for (std::size_t i = 0; i < node->tensor_at.size(); ++i) {
      if (node->tensor_at[i] < results.size()) {
        out[i + 1] = results[node->tensor_at[i]];
      }
    }
    node->ctx->push(L);
    forget(L, lua_gettop(L), kSaved);
    return out;
  }
};

/// ctx.needs_input_grad
void set_needs(lua_State* L, const Invocation& call) {
  lua_createtable(L, call.count, 0);
  for (int i = 0; i < call.count; ++i) {
    const at::Tensor* tensor = tensor_at(L, call.first + i);
    lua_pushboolean(L, tensor != nullptr && tensor->requires_grad() && at::GradMode::is_enabled());
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, call.context, "needs_input_grad");
}

/// The function that make_function gave: upvalue 1 is the definition.
int call_function(lua_State* L) {
  const int count = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  push_context(L);
  Invocation call{L, count + 1, count + 2, 1, count, c10::make_intrusive<LuaNode>(L, count + 1, count + 2)};
  call.node->arguments = static_cast<std::size_t>(count);
  variable_list inputs;
  for (int i = 1; i <= count; ++i) {
    if (const at::Tensor* tensor = tensor_at(L, i)) {
      inputs.push_back(*tensor);
      call.node->tensor_at.push_back(static_cast<std::size_t>(i - 1));
    }
  }
  set_needs(L, call);
  const Crossing crossing(L);
  const variable_list outputs = LuaFunction::apply(&call, at::TensorList(inputs));
  luaL_checkstack(L, static_cast<int>(outputs.size()) + 2, "too many results");
  for (const at::Tensor& output : outputs) {
    push_tensor(L, output);
  }
  return static_cast<int>(outputs.size());
}

}  // namespace

int make_function(lua_State* L) {
  KF_CHECK(lua_istable(L, 1), Code::script, "kf.autograd.fn: expected a table { forward = ..., backward = ... }, got {}", describe(L, 1));
  lua_settop(L, 1);
  lua_createtable(L, 0, 2);
  for (const char* name : {"forward", "backward"}) {
    lua_getfield(L, 1, name);
    KF_CHECK(is_callable(L, -1), Code::script, "kf.autograd.fn: {} must be a function, got {}", name, describe(L, -1));
    lua_setfield(L, 2, name);
  }
  for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    KF_CHECK(key == "forward" || key == "backward", Code::script, "kf.autograd.fn: no key '{}'{}", key,
             suggestion(key, {"forward", "backward"}));
  }
  lua_pushcclosure(L, &guarded<call_function>, 1);
  return 1;
}

}  // namespace kf::lua
