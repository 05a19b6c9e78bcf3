#include "bindings/nn/recompute_call.h"

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "bindings/nn/context_box.h"
#include "bindings/nn/module_box.h"
#include "bindings/tensor/tensor.h"
#include "bindings/tensor/weak_ref.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "model/moe/moe.h"
#include "model/recompute/recompute.h"

namespace kf::lua {
namespace {

thread_local std::int64_t calls = 0;

/// module(x [, ctx]), here or in backward.
at::Tensor call_module(const WeakRef& module, const at::Tensor& x, const std::optional<ForwardContext>& context) {
  const std::shared_ptr<Runtime> runtime = module.runtime();
  lua_State* L = runtime->state();
  KF_CHECK(lua_checkstack(L, 12) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  std::optional<LentForward> lent;
  if (context) {
    lent.emplace(L, *context);
  }
  const int box = lua_gettop(L);
  module.push(L);
  push_tensor(L, x);
  if (context) {
    lua_pushvalue(L, box);
  }
  runtime->call(context ? 2 : 1, 1);
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
  const std::optional<ForwardContext> context = given != nullptr ? std::optional(*given) : std::nullopt;
  lua_settop(L, 1);
  const auto value = std::make_shared<WeakRef>(L);
  const Crossing crossing(L);
  ++calls;
  if (!may_recompute(context ? *context : ForwardContext{}, module->training())) {
    push_tensor(L, call_module(*value, x, context), Memory::fresh);
    return 1;
  }
  Region region;
  region.body = [value, context](const at::Tensor& in) { return call_module(*value, in, context); };
  region.side = [module] { return side_terms_below(*module); };
  push_tensor(L, recompute(std::move(region), x), Memory::fresh);
  return 1;
}

std::int64_t recompute_calls() { return calls; }

}  // namespace kf::lua
