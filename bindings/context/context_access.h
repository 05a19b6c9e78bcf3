#pragma once
// What the methods of `ctx` share: the slot behind the userdata, and the context that is lent at the moment.

#include <lua.hpp>

#include <string_view>

#include "bindings/context/hook_context.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {

/// The slot, through the upvalue that every function of `ctx` has: faster than a metatable check, and `self` is compared with it.
inline ContextSlot& slot_of(lua_State* L) { return *static_cast<ContextSlot*>(lua_touserdata(L, lua_upvalueindex(1))); }

inline std::string_view event_name(const ContextSlot& slot) { return kEventNames[static_cast<std::size_t>(slot.event)]; }

inline HookContext& live(const ContextSlot& slot) {
  KF_CHECK(slot.context, Code::script, "this ctx belongs to a callback that has returned; keep what you need of it, not ctx itself");
  return *slot.context;
}

/// The context, for the method `name` called as ctx:name(...).
inline HookContext& self(lua_State* L, const char* name) {
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

/// Where requests of the method `name` go.
inline Controls& controls(lua_State* L, const char* name) {
  const HookContext& context = self(L, name);
  KF_CHECK(context.controls, Code::script, "ctx:{}() means nothing at {}", name, event_name(slot_of(L)));
  return *context.controls;
}

/// t[name] = function for the table on top, with the slot as upvalue.
inline void set_function(lua_State* L, const char* name, lua_CFunction function, ContextSlot* slot) {
  lua_pushlightuserdata(L, slot);
  lua_pushcclosure(L, function, 1);
  lua_setfield(L, -2, name);
}

/// Add their methods to the table on top.
void add_controls(lua_State* L, ContextSlot* slot);
void add_generate(lua_State* L, ContextSlot* slot);
void add_artifact(lua_State* L, ContextSlot* slot);
void add_tensors(lua_State* L, ContextSlot* slot);

}  // namespace kf::lua
