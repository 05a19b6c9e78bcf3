#include "bindings/script/reload_guard.h"

#include "bindings/vm/cancellation.h"
#include "bindings/vm/host_chunk.h"
#include "bindings/vm/runtime.h"
#include "core/error.h"
#include "core/log.h"

namespace kf {
namespace {

/// Gives the function that puts everything back. Whether the script's code is compiled later is what the script says to jit.on and jit.off.
constexpr const char* kGuard =
    "local os, jit = os, jit\n"
    "local exit, on, off, compiles = os.exit, jit.on, jit.off, jit.status()\n"
    "off()\n"
    "function os.exit() error('os.exit would end the run, for which the script is only read for its hooks', 2) end\n"
    "function jit.on(f, ...) if f == nil then compiles = true else return on(f, ...) end end\n"
    "function jit.off(f, ...) if f == nil then compiles = false else return off(f, ...) end end\n"
    "return function()\n"
    "  os.exit, jit.on, jit.off = exit, on, off\n"
    "  if compiles then on() end\n"
    "end\n";

}  // namespace

ReloadGuard::ReloadGuard(Script& script, const std::function<bool()>& cancelled, const char* why) : script_(script) {
  script.runtime().protect([this](lua_State* L) {
    lua::push_host_chunk(L, kGuard);
    lua_call(L, 0, 1);
    restore_ = std::make_unique<lua::Ref>(L);
  });
  cancellation_ = std::make_unique<lua::Cancellation>(script.runtime().state(), cancelled, why);
}

ReloadGuard::~ReloadGuard() {
  cancellation_.reset();
  try {
    script_.runtime().protect([this](lua_State* L) {
      restore_->push(L);
      lua_call(L, 0, 0);
    });
  } catch (const Error& e) {
    log::warn("after the script was read again: {}", e.what());
  }
}

}  // namespace kf
