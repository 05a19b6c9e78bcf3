#include "bindings/tensor/memory.h"

#include <algorithm>

namespace kf::lua {
namespace {

constexpr std::int64_t kLeast = 64 << 20;

// A process has one lua_State, on one thread; tests with several share the account, which then collects a little early.
thread_local std::int64_t held = 0;
thread_local std::int64_t since = 0;

}  // namespace

void account_allocation(lua_State* L, std::int64_t bytes) {
  since += bytes;
  if (since > std::max(kLeast, held / 2)) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    since = bytes;
  }
  held += bytes;
}

void account_release(std::int64_t bytes) { held -= bytes; }

std::int64_t accounted_bytes() { return held; }

}  // namespace kf::lua
