#pragma once
// Lua's collector sees 80 bytes where a tensor has 100 MB; this account makes it run in time.

#include <lua.hpp>

#include <cstdint>

namespace kf::lua {

/// Notes `bytes` that Lua is about to hold, and runs a full collection first when what came since the last one has grown past 64 MB and
/// past half of what is alive.
void account_allocation(lua_State* L, std::int64_t bytes);
/// A full collection where Lua holds more than 64 MB: before much memory is wanted, as by a backward.
void collect_before_use(lua_State* L);
/// Takes them off when the tensor is collected or freed.
void account_release(std::int64_t bytes);

}  // namespace kf::lua
