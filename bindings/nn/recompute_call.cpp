#include "bindings/nn/recompute_call.h"

#include <ATen/ATen.h>

#include <memory>

#include "bindings/nn/context_box.h"
#include "bindings/nn/module_box.h"
#include "bindings/tensor/tensor.h"
#include "bindings/tensor/weak_ref.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "model/recompute/recompute.h"

namespace kf::lua {
namespace {

thread_local std::int64_t calls = 0;

/// module(x [, ctx]), here or in backward.
at::Tensor call_module(const WeakRef& module, const at::Tensor& x, const ForwardContext& context, bool passes_context) {
  const std::shared_ptr<Runtime> runtime = module.runtime();
  lua_State* L = runtime->state();
  KF_CHECK(lua_checkstack(L, 12) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  const LentForward lent(L, context);
  const int box = lua_gettop(L);
  module.push(L);
  push_tensor(L, x);
  if (passes_context) {
    lua_pushvalue(L, box);
  }
  runtime->call(passes_context ? 2 : 1, 1);
  const at::Tensor* result = tensor_at(L, -1);
  KF_CHECK(result != nullptr, Code::script, "nn.recompute: the module must return a tensor, got {}", describe(L, -1));
  return *result;
}

}  // namespace

int recompute_call(lua_State* L) {
  const std::shared_ptr<Module> module = module_at(L, 1);
  KF_CHECK(module != nullptr, Code::script, "nn.recompute: expected a module, got {}", describe_any(L, 1));
  const at::Tensor x = check_tensor(L, 2, "nn.recompute");
  const ForwardContext* given = context_at(L, 3, "nn.recompute");
  const bool passes_context = given != nullptr;
  const ForwardContext& context = passes_context ? *given : ForwardUnderWay::now();
  lua_settop(L, 1);
  const auto value = std::make_shared<WeakRef>(L);
  const Crossing crossing(L);
  ++calls;
  if (!may_recompute(context, module->training())) {
    push_tensor(L, call_module(*value, x, context, passes_context), Memory::fresh);
    return 1;
  }
  Region region;
  region.body = [value, passes_context](const at::Tensor& in, const ForwardContext& inside) {
    return call_module(*value, in, inside, passes_context);
  };
  push_tensor(L, recompute(std::move(region), x, context), Memory::fresh);
  return 1;
}

std::int64_t recompute_calls() { return calls; }

}  // namespace kf::lua
