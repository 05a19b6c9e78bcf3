#include "bindings/vm/interrupt.h"

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/stop.h"

namespace kf::lua {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<Runtime*> watched{nullptr};  // one script at a time has runs
std::uint64_t seen_call = 0;
Clock::time_point seen_at;

/// Every thousand instructions once a stop was asked for.
void on_instructions(lua_State* L, lua_Debug*) {
  const Runtime* const runtime = watched;
  if (runtime == nullptr) {
    return;
  }
  const Clock::time_point now = Clock::now();
  if (runtime->calls() != seen_call) {  // another callback than the last time
    seen_call = runtime->calls();
    seen_at = now;
  } else if (std::chrono::duration<double>(now - seen_at).count() > Interrupt::kGraceSeconds) {
    lua_sethook(L, nullptr, 0, 0);
    luaL_error(L, "interrupted: this did not come to an end after Ctrl-C");
  }
}

/// Runs in the signal handler; lua_sethook is made for that.
void on_signal() {
  if (const Runtime* const runtime = watched) {
    lua_sethook(runtime->state(), on_instructions, LUA_MASKCOUNT, 1000);
  }
}

}  // namespace

Interrupt::Interrupt(Runtime& runtime) {
  watched = &runtime;
  StopSignals::set_listener(on_signal);
}

Interrupt::~Interrupt() {
  StopSignals::set_listener(nullptr);
  if (const Runtime* const runtime = watched.exchange(nullptr)) {
    lua_sethook(runtime->state(), nullptr, 0, 0);
  }
}

}  // namespace kf::lua
