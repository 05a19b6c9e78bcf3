#pragma once
// kf.autograd.fn{ forward = function(ctx, ...) end, backward = function(ctx, grad, ...) end }

#include <lua.hpp>

namespace kf::lua {

/// Checks the table at 1 and pushes a function that runs `forward` without gradients and enters `backward` into the graph.
/// ctx: save(...) and saved() for tensors; needs_input_grad (list of booleans); mark_non_differentiable(t); other fields are free.
int make_function(lua_State* L);

}  // namespace kf::lua
