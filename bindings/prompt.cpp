#include "bindings/prompt.h"

#include "bindings/runtime.h"
#include "bindings/stack.h"

namespace kf {
namespace {

/// require("kf.prompt")[name] on top of the stack.
void push_function(lua_State* L, const char* name) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "kf.prompt");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}

}  // namespace

std::string evaluate_line(Script& script, const std::string& text) {
  const Script::Phase phase(script, fs::path("stdin"));
  std::string out;
  script.runtime().protect([&](lua_State* L) {
    push_function(L, "evaluate");
    lua::push(L, std::string_view(text));
    lua_call(L, 1, 1);
    out = lua_tostring(L, -1);
  });
  return out;
}

std::vector<std::string> complete_line(Script& script, const std::string& line) {
  std::vector<std::string> out;
  script.runtime().protect([&](lua_State* L) {
    push_function(L, "complete");
    lua::push(L, std::string_view(line));
    lua_call(L, 1, 1);
    const int length = static_cast<int>(lua_objlen(L, -1));
    for (int i = 1; i <= length; ++i) {
      lua_rawgeti(L, -1, i);
      out.emplace_back(lua_tostring(L, -1));
      lua_pop(L, 1);
    }
  });
  return out;
}

}  // namespace kf
