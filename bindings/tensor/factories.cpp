// kf.zeros, kf.randn, ...: the dispatcher's operators that make tensors, with PyTorch's requires_grad.

#include <ATen/ATen.h>

#include "bindings/tensor/methods.h"
#include "bindings/tensor/operators.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

/// What torch.NAME has and no tensor's method is.
constexpr const char* kNames[] = {"zeros",      "ones",      "empty",     "full",       "arange",       "linspace",     "logspace",
                                  "eye",        "rand",      "randn",     "randint",    "randperm",     "zeros_like",   "ones_like",
                                  "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "tril_indices", "triu_indices",
                                  "cat",        "stack",     "where",     "einsum",     "empty_strided"};

/// Takes requires_grad out of the keyword table on top, if there is one; the table then is a copy.
bool take_requires_grad(lua_State* L) {
  const int table = lua_gettop(L);
  if (table == 0 || !lua_istable(L, table)) {
    return false;
  }
  lua_getfield(L, table, "requires_grad");
  const bool given = !lua_isnil(L, -1);
  const bool on = lua_toboolean(L, -1) != 0;
  lua_pop(L, 1);
  if (!given) {
    return false;
  }
  lua_newtable(L);
  bool any = false;
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING && lua_tostring(L, -2) == std::string_view("requires_grad")) {
      continue;
    }
    any = true;
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, table + 1);
  }
  lua_replace(L, table);
  if (!any) {
    lua_settop(L, table - 1);  // an empty table would be an empty list
  }
  return on;
}

int make(lua_State* L) {
  const Operator& op = *find_operator(static_cast<const char*>(lua_touserdata(L, lua_upvalueindex(1))));
  const bool requires_grad = take_requires_grad(L);
  const int results = call_operator(L, op, 1);
  if (requires_grad) {
    check_tensor(L, -1, op.name).set_requires_grad(true);
  }
  return results;
}

int is_tensor(lua_State* L) {
  lua_pushboolean(L, box_at(L, 1) != nullptr);
  return 1;
}

/// find_factory(name): the operator is looked up at the first call, so that a script without tensors does not walk the dispatcher.
int find_factory(lua_State* L) {
  const std::string name = check_text(L, 1, "kf", "a name");
  for (const char* known : kNames) {
    if (name == known) {
      lua_pushlightuserdata(L, const_cast<char*>(known));
      lua_pushcclosure(L, &guarded<make>, 1);
      return 1;
    }
  }
  lua_pushnil(L);
  return 1;
}

int factory_names(lua_State* L) {
  lua_newtable(L);
  int number = 0;
  for (const char* name : kNames) {
    lua_pushstring(L, name);
    lua_rawseti(L, -2, ++number);
  }
  return 1;
}

}  // namespace

void add_factories(lua_State* L) {
  const luaL_Reg functions[] = {{"tensor", &guarded<make_tensor>},
                                {"is_tensor", &guarded<is_tensor>},
                                {"find_factory", &guarded<find_factory>},
                                {"factory_names", &guarded<factory_names>},
                                {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
}

}  // namespace kf::lua
