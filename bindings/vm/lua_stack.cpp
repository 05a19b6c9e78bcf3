#include "bindings/vm/lua_stack.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "core/stacks/stacks.h"

namespace kf::lua {
namespace {

std::atomic<Runtime*> shown{nullptr};  // one script at a time has runs

/// The hook that was there before, which comes back.
struct Earlier {
  lua_Hook hook = nullptr;
  int mask = 0, count = 0;
};
Earlier earlier;

std::mutex guard;
std::string stack;  // that was asked for

void on_instruction(lua_State* L, lua_Debug*) {
  lua_sethook(L, earlier.hook, earlier.mask, earlier.count);
  luaL_traceback(L, L, nullptr, 0);
  const char* const text = lua_tostring(L, -1);
  {
    const std::lock_guard<std::mutex> lock(guard);
    stack = text != nullptr ? text : "";
  }
  lua_pop(L, 1);
}

/// Runs in the handler of a signal; lua_sethook is made for that.
void ask() {
  if (const Runtime* const runtime = shown) {
    lua_State* const L = runtime->state();
    if (lua_gethook(L) != on_instruction) {
      earlier = {lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L)};
    }
    lua_sethook(L, on_instruction, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
  }
}

std::string take() {
  const std::lock_guard<std::mutex> lock(guard);
  return std::exchange(stack, {});
}

ScriptStack script{};

}  // namespace

LuaStack::LuaStack(Runtime& runtime) {
  take();
  shown = &runtime;
  script = {::pthread_self(), ask, take};
  set_script_stack(&script);
}

LuaStack::~LuaStack() {
  set_script_stack(nullptr);
  if (const Runtime* const runtime = shown.exchange(nullptr); runtime != nullptr && lua_gethook(runtime->state()) == on_instruction) {
    lua_sethook(runtime->state(), earlier.hook, earlier.mask, earlier.count);
  }
}

}  // namespace kf::lua
