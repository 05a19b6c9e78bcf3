#include "bindings/tensor/memory.h"

#include <algorithm>

namespace kf::lua {
namespace {

constexpr std::int64_t kLeast = 64 << 20;

// A process has one lua_State, on one thread; tests with several share the account, which then collects a little early.
struct Account {
  std::int64_t held = 0;
  std::int64_t since = 0;  // the last full collection
};
thread_local Account account;

}  // namespace

void account_allocation(lua_State* L, std::int64_t bytes) {
  Account& own = account;  // one look at the thread's storage
  own.since += bytes;
  if (own.since > std::max(kLeast, own.held / 2)) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    own.since = bytes;
  }
  own.held += bytes;
}

void collect_before_use(lua_State* L) {
  if (account.held > kLeast) {
    lua_gc(L, LUA_GCCOLLECT, 0);
    account.since = 0;
  }
}

void account_release(std::int64_t bytes) { account.held -= bytes; }

}  // namespace kf::lua
