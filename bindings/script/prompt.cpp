#include "bindings/script/prompt.h"

#include <csignal>

#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"

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

/// While a line runs, Ctrl-C ends the line and not the program. A second one, which compiled loops need, ends the program.
class LineInterrupt {
 public:
  explicit LineInterrupt(lua_State* L) {
    running = L;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &earlier_);
  }
  ~LineInterrupt() {
    sigaction(SIGINT, &earlier_, nullptr);
    lua_sethook(running, nullptr, 0, 0);
    running = nullptr;
  }
  LineInterrupt(const LineInterrupt&) = delete;
  LineInterrupt& operator=(const LineInterrupt&) = delete;

 private:
  static void on_signal(int) { lua_sethook(running, stop_line, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1); }  // made for handlers
  static void stop_line(lua_State* L, lua_Debug*) {
    lua_sethook(L, nullptr, 0, 0);
    luaL_error(L, "interrupted");
  }

  static lua_State* running;
  struct sigaction earlier_ {};
};
lua_State* LineInterrupt::running = nullptr;

}  // namespace

std::string evaluate_line(Script& script, const std::string& text) {
  const Script::Phase phase(script, fs::path("stdin"));
  const LineInterrupt interrupt(script.runtime().state());
  std::string out;
  script.runtime().protect([&](lua_State* L) {
    push_function(L, "evaluate");
    lua::push(L, std::string_view(text));
    lua_call(L, 1, 1);
    out = lua_tostring(L, -1);
  });
  return out;
}

std::string chunk_problem(Script& script, const std::string& text) {
  std::string out;
  script.runtime().protect([&](lua_State* L) {
    push_function(L, "problem");
    lua::push(L, std::string_view(text));
    lua_pushliteral(L, "=attach");
    lua_call(L, 2, 1);
    out = lua_isnil(L, -1) ? "" : lua_tostring(L, -1);
  });
  return out;
}

std::vector<std::string> complete_line(Script& script, const std::string& line, const std::vector<std::string>& context) {
  std::vector<std::string> out;
  script.runtime().protect([&](lua_State* L) {
    push_function(L, "complete");
    lua::push(L, std::string_view(line));
    lua_newtable(L);
    if (!context.empty()) {
      lua_newtable(L);
      for (const std::string& name : context) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, name.c_str());
      }
      lua_setfield(L, -2, "ctx");
    }
    lua_call(L, 2, 1);
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
