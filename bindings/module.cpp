#include "bindings/module.h"

#include "bindings/guard.h"
#include "bindings/register.h"
#include "bindings/run.h"
#include "bindings/session.h"
#include "bindings/stack.h"
#include "core/log.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// log(level, line)
int write_log(lua_State* L) {
  const std::string level = check_text(L, 1, "kf.log", "a level");
  log::write(level == "warn"    ? log::Level::warn
             : level == "error" ? log::Level::error
                                : log::Level::info,
             check_text(L, 2, "kf.log", "a text"));
  return 0;
}

/// What `kf` does not hold as a plain field: kf.config, and a helpful error for the rest. Arguments: kf, key.
int missing_field(lua_State* L) {
  const std::string key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : describe(L, 2);
  if (key == "config") {
    const Session& session = Session::of(L);
    if (session.config) {
      session.config.push(L);
    } else {
      lua_pushnil(L);
    }
    return 1;
  }
  std::vector<std::string> names = {"config"};
  for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
    names.emplace_back(lua_tostring(L, -2));
  }
  fail(Code::script, "kf has no field '{}'{}", key, suggestion(key, names));
}

/// `kf` itself is not for assigning.
int refuse_assignment(lua_State* L) {
  fail(Code::script, "kf is read-only: cannot set '{}'; keep your own values in a local table",
       lua_isstring(L, 2) ? lua_tostring(L, 2) : describe(L, 2));
}

void push_dist(lua_State* L, const Session& session) {
  lua_createtable(L, 0, 2);
  set(L, "rank", static_cast<double>(session.host.rank));
  set(L, "world", static_cast<double>(session.host.world));
}

void push_arguments(lua_State* L, const Session& session) {
  lua_newtable(L);
  int number = 0;
  for (const std::string& argument : session.arguments) {
    push(L, argument);
    lua_rawseti(L, -2, ++number);
  }
}

int open_native(lua_State* L) {
  const Session& session = Session::of(L);
  const luaL_Reg functions[] = {{"log", &guarded<write_log>},
                                {"run", &guarded<run_job>},
                                {"missing", &guarded<missing_field>},
                                {"refuse", &guarded<refuse_assignment>},
                                {nullptr, nullptr}};
  lua_newtable(L);
  luaL_register(L, nullptr, functions);
  set(L, "version", std::string_view(KF_VERSION));
  push_register(L);
  lua_setfield(L, -2, "register");
  push_dist(L, session);
  lua_setfield(L, -2, "dist");
  push_arguments(L, session);
  lua_setfield(L, -2, "args");
  return 1;
}

}  // namespace

void preload_native(lua_State* L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, &guarded<open_native>);
  lua_setfield(L, -2, "kf.native");
  lua_pop(L, 2);
}

}  // namespace kf::lua
