#include "bindings/vm/coroutines.h"

#include "bindings/vm/guard.h"
#include "bindings/vm/host_chunk.h"
#include "bindings/vm/runtime.h"

namespace kf::lua {
namespace {

int stack_is_full(lua_State* L) {
  lua_pushboolean(L, Runtime::of(L).stack_is_full() ? 1 : 0);
  return 1;
}

}  // namespace

void limit_coroutines(lua_State* L) {
  // The error is a table: a text would get a position in front from each of the coroutines that it passes.
  push_host_chunk(
      L,
      "local full, rethrow, where = ...\n"
      "local resume, wrap = coroutine.resume, coroutine.wrap\n"
      "local shown = { __tostring = function(e) return e.message end }\n"
      "local function check()\n"
      "  if full() then\n"
      "    local at = where(3, 'Sl')\n"
      "    local place = at and at.currentline > 0 and at.short_src .. ':' .. at.currentline .. ': ' or ''\n"
      "    rethrow(setmetatable({ message = place .. 'C stack overflow: coroutines run in coroutines without an end' }, shown), 0)\n"
      "  end\n"
      "end\n"
      "function coroutine.resume(...) check() return resume(...) end\n"
      "function coroutine.wrap(f)\n"
      "  local run = wrap(f)\n"
      "  return function(...) check() return run(...) end\n"
      "end\n");
  lua_pushcfunction(L, &guarded<stack_is_full>);
  lua_getglobal(L, "error");
  lua_getglobal(L, "debug");
  lua_getfield(L, -1, "getinfo");
  lua_remove(L, -2);
  lua_call(L, 3, 0);
}

}  // namespace kf::lua
