// ctx:generate(prompt, options)

#include "bindings/adapters/context_access.h"
#include "bindings/guard.h"
#include "bindings/runtime.h"

namespace kf::lua {
namespace {

std::int64_t count_option(lua_State* L, const std::string& key) {
  const auto value = exact_integer(L, -1);
  KF_CHECK(value && *value >= 0, Code::script, "ctx:generate: {} must be a whole number from 0 on, got {}", key, describe(L, -1));
  return *value;
}

double share_option(lua_State* L, const std::string& key, double max) {
  const double value = lua_tonumber(L, -1);
  KF_CHECK(lua_type(L, -1) == LUA_TNUMBER && value >= 0 && value <= max, Code::script,
           "ctx:generate: {} must be a number from 0 to {}, got {}", key, max, describe(L, -1));
  return value;
}

GenerateOptions read_generate_options(lua_State* L, int index, GenerateOptions options) {
  if (lua_isnoneornil(L, index)) {
    return options;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "ctx:generate: expected a table of options, got {}", describe(L, index));
  const std::vector<std::string> names = {"max_new_tokens", "temperature", "top_k", "top_p", "seed"};
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    if (key == names[0]) {
      options.max_new_tokens = count_option(L, key);
    } else if (key == names[1]) {
      options.temperature = share_option(L, key, 1e6);
    } else if (key == names[2]) {
      options.top_k = count_option(L, key);
    } else if (key == names[3]) {
      options.top_p = share_option(L, key, 1);
    } else if (key == names[4]) {
      options.seed = static_cast<std::uint64_t>(count_option(L, key));
    } else {
      fail(Code::script, "ctx:generate: no option '{}'{}", key, suggestion(key, names));
    }
  }
  return options;
}

int context_generate(lua_State* L) {
  const HookContext& context = self(L, "generate");
  const std::string prompt = check_text(L, 2, "ctx:generate", "a prompt");
  const GenerateOptions options = read_generate_options(L, 3, context.generate_defaults);
  const Crossing crossing(L);
  push(L, available(L, "generate", context.generate)(prompt, options));
  return 1;
}

}  // namespace

void add_generate(lua_State* L, ContextSlot* slot) { set_function(L, "generate", &guarded<context_generate>, slot); }

}  // namespace kf::lua
