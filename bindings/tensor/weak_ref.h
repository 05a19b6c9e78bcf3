#pragma once
// A Lua value held by an autograd graph. The graph may live in a tensor that Lua itself holds, so it must not keep the runtime alive.

#include <lua.hpp>

#include <memory>

#include "bindings/vm/runtime.h"

namespace kf::lua {

class WeakRef {
 public:
  /// Takes the value on top of `L`'s stack.
  explicit WeakRef(lua_State* L) : runtime_(Runtime::of(L).weak_from_this()), ref_(luaL_ref(L, LUA_REGISTRYINDEX)) {}
  ~WeakRef() {
    if (const auto runtime = runtime_.lock()) {
      luaL_unref(runtime->state(), LUA_REGISTRYINDEX, ref_);
    }
  }
  WeakRef(const WeakRef&) = delete;
  WeakRef& operator=(const WeakRef&) = delete;

  /// Throws Code::script when the script has ended.
  std::shared_ptr<Runtime> runtime() const {
    std::shared_ptr<Runtime> runtime = runtime_.lock();
    KF_CHECK(runtime, Code::script, "a gradient reached a Lua function whose script has ended");
    return runtime;
  }
  void push(lua_State* L) const { lua_rawgeti(L, LUA_REGISTRYINDEX, ref_); }

 private:
  std::weak_ptr<Runtime> runtime_;
  int ref_;
};

}  // namespace kf::lua
