#include "bindings/tensor/options.h"

#include "bindings/tensor/names.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {

TensorOptions read_options(lua_State* L, int index, std::string_view function) {
  TensorOptions out;
  if (lua_isnoneornil(L, index)) {
    return out;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table of options, got {}", function, describe(L, index));
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    if (key == "dtype") {
      out.dtype = check_dtype(check_text(L, -1, function, "dtype"), function);
    } else if (key == "device") {
      const std::string name = check_text(L, -1, function, "device");
      out.device = device_named(name);
      KF_CHECK(out.device.has_value(), Code::script, "{}: no device '{}'; there are cpu, cuda, cuda:0, ...", function, name);
    } else if (key == "requires_grad") {
      KF_CHECK(lua_type(L, -1) == LUA_TBOOLEAN, Code::script, "{}: requires_grad must be true or false, got {}", function, describe(L, -1));
      out.requires_grad = lua_toboolean(L, -1) != 0;
    } else {
      fail(Code::script, "{}: no option '{}'{}", function, key, suggestion(key, {"dtype", "device", "requires_grad"}));
    }
  }
  return out;
}

}  // namespace kf::lua
