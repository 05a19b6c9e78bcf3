#pragma once
// kf.nn's native layers.

#include <lua.hpp>

namespace kf::lua {

/// Pushes the native half of kf.nn: module, parameter, buffer, linear, embedding, rmsnorm, layernorm, norm, mlp, moe, attention, rope,
/// dropout.
void push_layers(lua_State* L);

}  // namespace kf::lua
