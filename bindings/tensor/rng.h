#pragma once
// kf.rng, the run's random numbers, and generators of one's own.

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <cstdint>

namespace kf::lua {

/// The generator at `index`; null for anything else.
const at::Generator* generator_at(lua_State* L, int index);
void push_generator(lua_State* L, at::Generator generator);

/// Pushes kf.rng: the process's default generator, from which every operator draws that is not given another; its state is in checkpoints.
/// Methods: seed(n), random([m [, n]]), normal([mean, std]), state(), load(state).
void push_rng(lua_State* L);
/// Makes kf.rng begin as in every other process: a script that is started again draws the same.
void begin_rng();

/// While one exists, kf.rng draws what the run's seed gives. Then it goes on from where it was, so what a script draws between its runs
/// does not depend on which of them were complete already.
class RunDraws {
 public:
  explicit RunDraws(std::int64_t seed);
  ~RunDraws();
  RunDraws(const RunDraws&) = delete;
  RunDraws& operator=(const RunDraws&) = delete;

 private:
  at::Tensor before_;  // the generator's state
};

/// kf.generator(seed): a new one of its own.
int make_generator(lua_State* L);

}  // namespace kf::lua
