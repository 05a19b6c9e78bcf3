#pragma once
// kf.dist and kf.mesh: the ranks of the run, and what they do together.

#include <lua.hpp>

#include <cstdint>

namespace kf {
class World;
}

namespace kf::lua {

/// Once for each runtime, before the others: it is one of `world` processes.
void open_dist(lua_State* L, std::int64_t world);

/// Pushes kf.dist: { rank, world } of this process, and calls over the ranks along an axis (parallel/graph.h where they are
/// differentiable). With one rank each is the identity. Of several processes outside of runs they throw Code::script: ranks meet when a run
/// begins.
void push_dist(lua_State* L, std::int64_t rank, std::int64_t world);

/// The ranks of the run that is on; null when it is over.
void set_world(lua_State* L, const World* world);

/// Pushes kf.mesh: { rank, size, degrees = { tp = 2, ... }, coordinates = { tp = 0, ... } }; nil outside of runs.
void push_mesh(lua_State* L);

}  // namespace kf::lua
