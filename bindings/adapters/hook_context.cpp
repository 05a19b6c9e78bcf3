#include "bindings/adapters/hook_context.h"

#include <algorithm>
#include <new>

#include "bindings/guard.h"
#include "bindings/stack.h"
#include "core/text.h"

namespace kf::lua {
namespace {

enum Field { kStep, kTokens, kLr, kParams, kMaxSteps, kEval };
constexpr const char* kFieldNames[ContextSlot::kFields] = {"step", "tokens", "lr", "n_params", "max_steps", "eval"};

/// The slot, through the upvalue that every function of `ctx` has: faster than a metatable check, and `self` is compared with it.
ContextSlot& slot_of(lua_State* L) { return *static_cast<ContextSlot*>(lua_touserdata(L, lua_upvalueindex(1))); }

std::string_view event_name(const ContextSlot& slot) { return kEventNames[static_cast<std::size_t>(slot.event)]; }

HookContext& live(const ContextSlot& slot) {
  KF_CHECK(slot.context, Code::script, "this ctx belongs to a callback that has returned; keep what you need of it, not ctx itself");
  return *slot.context;
}

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
    lua_pushnumber(L, static_cast<double>(context.state.tokens));
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

/// The context, for the method `name` called as ctx:name(...).
HookContext& self(lua_State* L, const char* name) {
  const ContextSlot& slot = slot_of(L);
  KF_CHECK(lua_touserdata(L, 1) == &slot, Code::script, "ctx:{}: call it with a colon, not a dot", name);
  return live(slot);
}

/// The function behind a method; throws when this event has none.
template <class F>
const F& available(lua_State* L, const char* name, const F& function) {
  KF_CHECK(function, Code::script, "ctx:{}() means nothing at {}", name, event_name(slot_of(L)));
  return function;
}

int context_loss(lua_State* L) {
  const HookContext& context = self(L, "loss");
  const Crossing crossing(L);
  lua_pushnumber(L, available(L, "loss", context.loss)());
  return 1;
}

int context_grad_norm(lua_State* L) {
  const HookContext& context = self(L, "grad_norm");
  const Crossing crossing(L);
  lua_pushnumber(L, available(L, "grad_norm", context.grad_norm)());
  return 1;
}

int context_log(lua_State* L) {
  const HookContext& context = self(L, "log");
  KF_CHECK(lua_istable(L, 2), Code::script, "ctx:log: expected a table of name = number, got {}", describe(L, 2));
  std::vector<std::pair<std::string, double>> values;
  for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "ctx:log: expected names as keys, got {}", describe(L, -2));
    const std::string name = lua_tostring(L, -2);
    KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "ctx:log: '{}' must be a number, got {}", name, describe(L, -1));
    values.emplace_back(name, lua_tonumber(L, -1));
  }
  std::sort(values.begin(), values.end());
  available(L, "log", context.log)(values);
  return 0;
}

int context_stop(lua_State* L) {
  const HookContext& context = self(L, "stop");
  const std::string reason = lua_isnoneornil(L, 2) ? "" : check_text(L, 2, "ctx:stop", "a reason");
  available(L, "stop", context.stop)(reason);
  return 0;
}

int context_request_save(lua_State* L) {
  const HookContext& context = self(L, "request_save");
  const std::string name = lua_isnoneornil(L, 2) ? "" : check_text(L, 2, "ctx:request_save", "a name");
  const bool plain =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.'; });
  KF_CHECK(plain && !name.starts_with('.'), Code::script,
           "ctx:request_save: the name {} becomes a folder; use letters, digits, '_', '-' and '.'", kf::quoted(name));
  available(L, "request_save", context.request_save)(name);
  return 0;
}

std::int64_t count_option(lua_State* L, const std::string& key) {
  const auto value = exact_integer(L, -1);
  KF_CHECK(value && *value >= 0, Code::script, "ctx:generate: {} must be a whole number from 0 on, got {}", key, describe(L, -1));
  return *value;
}

double share_option(lua_State* L, const std::string& key, double max) {
  const double value = lua_tonumber(L, -1);
  KF_CHECK(lua_type(L, -1) == LUA_TNUMBER && value >= 0 && value <= max, Code::script,
           "ctx:generate: {} must be a number from 0 to {}, got {}", key, max, describe(L, -1));
  return value;
}

GenerateOptions read_generate_options(lua_State* L, int index) {
  GenerateOptions options;
  if (lua_isnoneornil(L, index)) {
    return options;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "ctx:generate: expected a table of options, got {}", describe(L, index));
  const std::vector<std::string> names = {"max_new_tokens", "temperature", "top_k", "top_p", "seed"};
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    if (key == names[0]) {
      options.max_new_tokens = count_option(L, key);
    } else if (key == names[1]) {
      options.temperature = share_option(L, key, 1e6);
    } else if (key == names[2]) {
      options.top_k = count_option(L, key);
    } else if (key == names[3]) {
      options.top_p = share_option(L, key, 1);
    } else if (key == names[4]) {
      options.seed = static_cast<std::uint64_t>(count_option(L, key));
    } else {
      fail(Code::script, "ctx:generate: no option '{}'{}", key, suggestion(key, names));
    }
  }
  return options;
}

int context_generate(lua_State* L) {
  const HookContext& context = self(L, "generate");
  const std::string prompt = check_text(L, 2, "ctx:generate", "a prompt");
  const GenerateOptions options = read_generate_options(L, 3);
  const Crossing crossing(L);
  push(L, available(L, "generate", context.generate)(prompt, options));
  return 1;
}

/// t[name] = function, with the slot (and what lies on top of the table) as upvalues.
void set_function(lua_State* L, const char* name, lua_CFunction function, ContextSlot* slot) {
  lua_pushlightuserdata(L, slot);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
}

void push_methods(lua_State* L, ContextSlot* slot) {
  lua_newtable(L);
  set_function(L, "loss", &guarded<context_loss>, slot);
  set_function(L, "grad_norm", &guarded<context_grad_norm>, slot);
  set_function(L, "log", &guarded<context_log>, slot);
  set_function(L, "stop", &guarded<context_stop>, slot);
  set_function(L, "request_save", &guarded<context_request_save>, slot);
  set_function(L, "generate", &guarded<context_generate>, slot);
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
  lua_createtable(L, 0, 4);
  set(L, "step", static_cast<double>(eval.step));
  set(L, "loss", eval.loss);
  set(L, "perplexity", eval.perplexity);
  set(L, "tokens", static_cast<double>(eval.tokens));
  if (eval.ema) {
    set(L, "ema", *eval.ema);
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
