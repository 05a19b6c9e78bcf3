// ctx:generate(prompt or prompts, options)

#include "bindings/context/context_access.h"
#include "bindings/context/generate_call.h"
#include "bindings/vm/guard.h"

namespace kf::lua {
namespace {

int context_generate(lua_State* L) {
  const HookContext& context = self(L, "generate");
  return call_generate(L, "ctx:generate", context.generate_defaults, available(L, "generate", context.generate));
}

}  // namespace

void add_generate(lua_State* L, ContextSlot* slot) { set_function(L, "generate", &guarded<context_generate>, slot); }

}  // namespace kf::lua
