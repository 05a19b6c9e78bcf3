#include "bindings/adapters/lua_part.h"

#include <ATen/ATen.h>

#include "bindings/adapters/kept_state.h"
#include "bindings/nn/build_scope.h"
#include "bindings/nn/context_box.h"
#include "bindings/nn/module_box.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/running.h"
#include "core/text.h"
#include "core/trace.h"

namespace kf::lua {

LuaPart::LuaPart(std::string where, Ref value) : where_(std::move(where)), value_(std::move(value)) {
  lua_State* L = value_.runtime().state();
  const StackTop top(L);
  value_.push(L);
  module_ = module_at(L, lua_gettop(L));
  value_.runtime().protect([&](lua_State* state) {
    value_.push(state);
    keep_module_states(state, lua_gettop(state), where_, kept_);
  });
}

void LuaPart::call(const at::Tensor& x, const ForwardContext* context, int results, const std::function<void(lua_State*)>& read) const {
  Runtime& runtime = value_.runtime();
  lua_State* L = runtime.state();
  KF_CHECK(lua_checkstack(L, 12) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  std::optional<LentForward> lent;
  if (context != nullptr) {
    lent.emplace(L, *context);  // stays below the call, so that it outlives what the function does with its argument
  }
  const int box = lua_gettop(L);
  value_.push(L);
  push_tensor(L, x);
  if (context != nullptr) {
    lua_pushvalue(L, box);
  }
  const Running running(where_.c_str(), "forward");
  const TraceRange range(TraceKind::call, where_.c_str(), "forward");
  try {
    runtime.call(context != nullptr ? 2 : 1, results);
  } catch (const Error& error) {
    rethrow_from(error, where_, "in forward of " + where_);
  }
  read(L);
}

at::Tensor LuaPart::call_free(const at::Tensor& x, const ForwardContext* context) const {
  at::Tensor out;
  call(x, context, 1, [&](lua_State* L) {
    const at::Tensor* result = tensor_at(L, -1);
    if (result == nullptr) {
      value_.push(L);
      const bool self = lua_rawequal(L, -1, -2) != 0;
      lua_pop(L, 1);
      fail(Code::script, "{}: forward must return a tensor, got {}", where_,
           self ? "the module itself; it is a method: forward = function(self, x, ctx)" : describe(L, -1));
    }
    out = *result;
  });
  return out;
}

bool LuaPart::call_method(const char* name, const std::function<int(lua_State*)>& push) const {
  bool found = false;
  try {
    value_.runtime().protect([&](lua_State* L) {
      value_.push(L);
      if (!lua_istable(L, -1)) {
        return;
      }
      lua_getfield(L, -1, name);
      if (lua_isnil(L, -1)) {
        return;
      }
      KF_CHECK(is_callable(L, -1), Code::script, "{}: {} must be a function, got {}", where_, name, describe(L, -1));
      found = true;
      lua_insert(L, -2);
      lua_call(L, 1 + push(L), 0);
    });
  } catch (const Error& error) {
    rethrow_from(error, where_, format("in {} of {}", name, where_));
  }
  return found;
}

at::Tensor LuaPart::call(const at::Tensor& x, const ForwardContext* context) const {
  at::Tensor result = call_free(x, context);
  KF_CHECK(result.sizes() == x.sizes(), Code::script, "{}: forward must return the shape of its input, {}, got {}", where_, tensor_text(x),
           tensor_text(result));
  if (result.scalar_type() == at::kFloat && (x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf)) {
    return result.to(x.scalar_type());  // vectors are fp32 under bf16 and widen what they meet; native layers round at their end, too
  }
  KF_CHECK(result.scalar_type() == x.scalar_type(), Code::script,
           "{}: forward must return the type of its input, {}, got {}; make constants with x.dtype, or convert with result:to(x)", where_,
           tensor_text(x), tensor_text(result));
  return result;
}

LuaPart call_factory(const Ref& factory, const std::string& where, const PartArgs& args, const Place& place,
                     const std::function<void(lua_State*)>& fill) {
  const BuildScope scope(args, place);
  return LuaPart(where, build(factory, where, args, fill, "a module (nn.module({ forward = ... })) or a function", is_part));
}

void set_count(lua_State* L, const char* name, std::int64_t value) {
  push_integer(L, value, name);
  lua_setfield(L, -2, name);
}

bool is_part(lua_State* L, int index) {
  return module_at(L, index < 0 ? lua_gettop(L) + index + 1 : index) != nullptr || is_callable(L, index);
}

}  // namespace kf::lua
