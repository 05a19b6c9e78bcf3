#include "bindings/script/spec.h"

#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/text.h"

namespace kf {
namespace {

/// require("kf.test") on top of the stack.
void push_module(lua_State* L, const char* name) {
  lua_getglobal(L, "require");
  lua_pushstring(L, name);
  lua_call(L, 1, 1);
}

std::int64_t count(lua_State* L, const char* name) {
  lua_getfield(L, -1, name);
  const auto value = static_cast<std::int64_t>(lua_tonumber(L, -1));
  lua_pop(L, 1);
  return value;
}

}  // namespace

SpecReport run_spec(Script& script, const fs::path& path, const std::string& filter) {
  const Script::Phase phase(script, path);
  lua::Runtime& runtime = script.runtime();
  runtime.protect([&](lua_State* L) {
    push_module(L, "kf.test");
    if (!filter.empty()) {
      lua::set(L, "filter", std::string_view(filter));
    }
  });
  execute_file(script, path);
  SpecReport report;
  runtime.protect([&](lua_State* L) {
    push_module(L, "kf.test");
    lua_getfield(L, -1, "report");
    lua_call(L, 0, 1);
    report = {count(L, "passed"), count(L, "failed"), count(L, "skipped")};
  });
  return report;
}

void execute_file(Script& script, const fs::path& path) {
  const Script::Phase phase(script, path);
  script.runtime().load_file(path, path.string());
  script.runtime().call(0, 0);
}

void execute_text(Script& script, const std::string& text) {
  const Script::Phase phase(script, fs::path("command line"));
  lua::Runtime& runtime = script.runtime();
  lua_State* L = runtime.state();
  if (luaL_loadbuffer(L, text.data(), text.size(), "=command line") != 0) {
    const std::string message = lua_tostring(L, -1);
    lua_pop(L, 1);
    throw Error(Code::script, message);
  }
  runtime.call(0, 0);
}

}  // namespace kf
