#include "bindings/vm/interrupt.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/stop.h"

namespace kf::lua {
namespace {

using Clock = std::chrono::steady_clock;

std::array<std::atomic<Runtime*>, 4> watched{};  // the script of a run, those that are beside it
std::uint64_t seen_call = 0;
Clock::time_point seen_at;

/// Every thousand instructions once a stop was asked for.
void on_instructions(lua_State* L, lua_Debug*) {
  const std::uint64_t call = Runtime::of(L).calls();
  const Clock::time_point now = Clock::now();
  if (call != seen_call) {  // another callback than the last time
    seen_call = call;
    seen_at = now;
  } else if (std::chrono::duration<double>(now - seen_at).count() > Interrupt::kGraceSeconds) {
    lua_sethook(L, nullptr, 0, 0);
    luaL_error(L, "interrupted: this did not come to an end after Ctrl-C");
  }
}

/// Runs in the signal handler; lua_sethook is made for that.
void on_signal() {
  for (const std::atomic<Runtime*>& one : watched) {
    if (const Runtime* const runtime = one) {
      lua_sethook(runtime->state(), on_instructions, LUA_MASKCOUNT, 1000);
    }
  }
}

}  // namespace

Interrupt::Interrupt(Runtime& runtime) : runtime_(runtime) {
  for (std::atomic<Runtime*>& one : watched) {
    Runtime* none = nullptr;
    if (one.compare_exchange_strong(none, &runtime)) {
      break;
    }
  }
  StopSignals::set_listener(on_signal);
}

Interrupt::~Interrupt() {
  bool others = false;
  for (std::atomic<Runtime*>& one : watched) {
    Runtime* mine = &runtime_;
    others = !one.compare_exchange_strong(mine, nullptr) && mine != nullptr ? true : others;
  }
  if (!others) {
    StopSignals::set_listener(nullptr);
  }
  lua_sethook(runtime_.state(), nullptr, 0, 0);
}

}  // namespace kf::lua
