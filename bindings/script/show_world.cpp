#include "bindings/script/show_world.h"

#include "bindings/dist/dist.h"
#include "bindings/vm/runtime.h"

namespace kf {

void show_world(const Script::RunScope& run, const World& world) {
  run.script().runtime().protect([&](lua_State* L) { lua::set_world(L, &world); });
}

}  // namespace kf
