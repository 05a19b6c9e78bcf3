#include "bindings/context/hook_context.h"

#include <algorithm>
#include <new>

#include "bindings/context/context_access.h"
#include "bindings/context/rows.h"
#include "bindings/tensor/numbers.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/text.h"

namespace kf::lua {
namespace {

enum Field { kStep, kTokens, kLr, kParams, kMaxSteps, kEval, kEpoch, kPhase, kSeconds };
constexpr const char* kFieldNames[ContextSlot::kFields] = {"step", "tokens", "lr",    "n_params", "max_steps",
                                                           "eval", "epoch",  "phase", "seconds"};

[[noreturn]] void fail_unknown(const std::string& key, lua_State* L) {
  std::vector<std::string> names(std::begin(kFieldNames), std::end(kFieldNames));
  for (lua_pushnil(L); lua_next(L, lua_upvalueindex(2)) != 0; lua_pop(L, 1)) {
    names.emplace_back(lua_tostring(L, -2));
  }
  std::sort(names.begin(), names.end());
  fail(Code::script, "ctx has no field '{}'{}", key, suggestion(key, names));
}

int context_index(lua_State* L) {
  ContextSlot& slot = slot_of(L);
  const HookContext& context = live(slot);
  const char* key = lua_tostring(L, 2);
  if (key == slot.names[kStep]) {
    lua_pushnumber(L, static_cast<double>(context.state.step));
  } else if (key == slot.names[kLr]) {
    lua_pushnumber(L, context.lr);
  } else if (key == slot.names[kTokens]) {
    push_wide(L, context.state.tokens);
  } else if (key == slot.names[kEval]) {
    if (context.eval) {
      push_cached_eval(L, 1, slot, *context.eval);
    } else {
      lua_pushnil(L);
    }
  } else if (key == slot.names[kParams]) {
    lua_pushnumber(L, static_cast<double>(context.n_params));
  } else if (key == slot.names[kMaxSteps]) {
    lua_pushnumber(L, static_cast<double>(context.max_steps));
  } else if (key == slot.names[kEpoch]) {
    lua_pushnumber(L, context.epoch);
  } else if (key == slot.names[kPhase]) {
    context.phase.empty() ? lua_pushnil(L) : push(L, context.phase);
  } else if (key == slot.names[kSeconds]) {
    lua_pushnumber(L, context.seconds);
  } else {
    lua_settop(L, 2);
    lua_rawget(L, lua_upvalueindex(2));
    if (lua_isnil(L, -1)) {
      fail_unknown(key ? key : luaL_typename(L, 2), L);
    }
  }
  return 1;
}

int context_newindex(lua_State* L) {
  fail(Code::script, "ctx is read-only: cannot set '{}'", lua_isstring(L, 2) ? lua_tostring(L, 2) : luaL_typename(L, 2));
}

int context_tostring(lua_State* L) {
  const ContextSlot& slot = slot_of(L);
  push(L, slot.context ? format("ctx of {} at step {}", event_name(slot), slot.context->state.step) : "ctx (its callback has returned)");
  return 1;
}

/// nil where the step has no label that counts.
int push_number(lua_State* L, std::optional<double> number) {
  number ? lua_pushnumber(L, *number) : lua_pushnil(L);
  return 1;
}

int context_loss(lua_State* L) {
  const HookContext& context = self(L, "loss");
  const Crossing crossing(L);
  return push_number(L, available(L, "loss", context.loss)());
}

int context_grad_norm(lua_State* L) {
  const HookContext& context = self(L, "grad_norm");
  const Crossing crossing(L);
  return push_number(L, available(L, "grad_norm", context.grad_norm)());
}

int context_metrics(lua_State* L) {
  const HookContext& context = self(L, "metrics");
  push_row(L, available(L, "metrics", context.metrics)());
  return 1;
}

int context_evaluate(lua_State* L) {
  const HookContext& context = self(L, "evaluate");
  publish_weights(slot_of(L));
  const Crossing crossing(L);
  push_eval(L, available(L, "evaluate", context.evaluate)());
  return 1;
}

void push_methods(lua_State* L, ContextSlot* slot) {
  lua_newtable(L);
  set_function(L, "loss", &guarded<context_loss>, slot);
  set_function(L, "grad_norm", &guarded<context_grad_norm>, slot);
  set_function(L, "metrics", &guarded<context_metrics>, slot);
  set_function(L, "evaluate", &guarded<context_evaluate>, slot);
  add_controls(L, slot);
  add_generate(L, slot);
  add_artifact(L, slot);
  add_tensors(L, slot);
}

}  // namespace

HookContextHandle make_hook_context(lua_State* L) {
  auto* slot = new (lua_newuserdata(L, sizeof(ContextSlot))) ContextSlot();
  lua_newtable(L);  // the environment: pins the field names, keeps the table of the last evaluation at 0
  for (int i = 0; i < ContextSlot::kFields; ++i) {
    lua_pushstring(L, kFieldNames[i]);
    slot->names[i] = lua_tostring(L, -1);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfenv(L, -2);
  lua_newtable(L);  // the metatable
  lua_pushlightuserdata(L, slot);
  push_methods(L, slot);
  lua_pushcclosure(L, &guarded<context_index>, 2);
  lua_setfield(L, -2, "__index");
  set_function(L, "__newindex", &guarded<context_newindex>, slot);
  set_function(L, "__tostring", &guarded<context_tostring>, slot);
  set(L, "__metatable", std::string_view("ctx"));
  lua_setmetatable(L, -2);
  HookContextHandle handle;
  handle.userdata = Ref(L);
  handle.slot = slot;
  return handle;
}

void push_eval(lua_State* L, const EvalResult& eval) {
  lua_createtable(L, 0, 6);
  set(L, "step", static_cast<double>(eval.step));
  if (eval.has_loss()) {
    set(L, "loss", eval.loss);
    set(L, "perplexity", eval.perplexity);
  }
  set(L, "tokens", static_cast<double>(eval.tokens));
  if (eval.ema) {
    set(L, "ema", *eval.ema);
  }
  if (eval.mtp_acceptance) {
    set(L, "mtp_acceptance", *eval.mtp_acceptance);
  }
  if (eval.bits_per_byte) {
    set(L, "bits_per_byte", *eval.bits_per_byte);
  }
  if (eval.accuracy) {
    set(L, "accuracy", *eval.accuracy);
  }
  for (const EvalResult& one : eval.sets) {
    push_eval(L, one);
    lua_setfield(L, -2, one.name.c_str());
  }
}

void push_cached_eval(lua_State* L, int context, ContextSlot& slot, const EvalResult& eval) {
  lua_getfenv(L, context);
  if (slot.eval_step != eval.step || slot.eval_loss != eval.loss) {  // nan differs from itself: made anew, which is right too
    push_eval(L, eval);
    lua_rawseti(L, -2, 0);
    slot.eval_step = eval.step;
    slot.eval_loss = eval.loss;
  }
  lua_rawgeti(L, -1, 0);
  lua_remove(L, -2);
}

}  // namespace kf::lua
