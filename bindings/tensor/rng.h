#pragma once
// kf.rng, the run's random numbers, and generators of one's own.

#include <ATen/core/Generator.h>
#include <lua.hpp>

namespace kf::lua {

/// The generator at `index`; null for anything else.
const at::Generator* generator_at(lua_State* L, int index);
void push_generator(lua_State* L, at::Generator generator);

/// Pushes kf.rng: the process's default generator, from which every operator draws that is not given another; its state is in checkpoints.
/// Methods: seed(n), random([m [, n]]), normal([mean, std]), state(), load(state).
void push_rng(lua_State* L);
/// kf.generator(seed): a new one of its own.
int make_generator(lua_State* L);

}  // namespace kf::lua
