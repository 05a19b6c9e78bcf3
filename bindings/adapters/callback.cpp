#include "bindings/adapters/callback.h"

#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {

Ref take_method(lua_State* L, const char* name, const std::string& where, bool optional) {
  lua_getfield(L, -1, name);
  if (optional && lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return {};
  }
  KF_CHECK(is_callable(L, -1), Code::script, "{}: '{}' must be a function, got {}", where, name, describe(L, -1));
  return Ref(L);
}

}  // namespace kf::lua
