#include "bindings/adapters/kept_state.h"

#include <algorithm>
#include <utility>

#include "bindings/nn/module_box.h"
#include "bindings/session/factory.h"
#include "bindings/session/session.h"
#include "bindings/value/values.h"
#include "bindings/vm/stack.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// "mlp.tanh_mlp" of "recipe.lua:12: mlp 'tanh_mlp'": the same wherever the script stands.
std::string state_key(const std::string& where) {
  const std::size_t name = where.rfind('\'', where.size() - 2);  // folders may have quotes, too
  const std::size_t kind = where.rfind(' ', name - 2) + 1;
  return where.substr(kind, name - 1 - kind) + "." + where.substr(name + 1, where.size() - name - 2);
}

/// The function t[key] of the table at `index`, empty where it is nil.
Ref function_or_nil(lua_State* L, int index, const char* key, const std::string& where) {
  lua_getfield(L, index, key);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    return {};
  }
  KF_CHECK(is_callable(L, -1), Code::script, "{}: {} must be a function, got {}", where, key, describe(L, -1));
  return Ref(L);
}

bool is_function_part(lua_State* L, int index) {
  if (is_callable(L, index)) {
    return true;
  }
  if (!lua_istable(L, index)) {
    return false;
  }
  lua_rawgeti(L, index, 1);
  const bool callable = is_callable(L, -1);
  lua_pop(L, 1);
  return callable;
}

/// The table on top holds its function at 1, and nothing unknown.
void check_function_table(lua_State* L, const std::string& where) {
  const int table = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
    const bool first = lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == 1;
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    KF_CHECK(first || key == "state" || key == "load", Code::script, "{}: no key '{}' beside the function{}", where, key,
             suggestion(key, {"state", "load"}));
  }
}

/// The value at `index` as a table of modules: what nn.list gives.
bool is_module_list(lua_State* L, int index) {
  if (!lua_istable(L, index) || module_at(L, index) != nullptr) {
    return false;
  }
  lua_rawgeti(L, index, 1);
  const bool modules = module_at(L, lua_gettop(L)) != nullptr;
  lua_pop(L, 1);
  return modules;
}

class ModuleStates {
 public:
  ModuleStates(lua_State* L, const std::string& where, std::vector<PartStates::Handle>& out) : L_(L), where_(where), out_(out) {}

  /// The value at `index`, whose path from the part is `path`.
  void visit(int index, const std::string& path) {
    luaL_checkstack(L_, 8, "modules within modules");
    if (!lua_istable(L_, index)) {
      return;  // native
    }
    if (is_module_list(L_, index)) {
      visit_list(index, path);
    } else if (module_at(L_, index) != nullptr) {
      take(index, path);
      visit_fields(index, path);
    }
  }

 private:
  void take(int index, const std::string& path) {
    lua_pushliteral(L_, "state");
    lua_rawget(L_, index);
    const bool state = is_callable(L_, -1) && module_at(L_, lua_gettop(L_)) == nullptr;
    lua_pushliteral(L_, "load");
    lua_rawget(L_, index);
    const bool load = is_callable(L_, -1) && module_at(L_, lua_gettop(L_)) == nullptr;
    lua_pop(L_, 2);
    if (!state && !load) {
      return;  // fields of the module's own
    }
    StateFunctions functions = read_state_functions(L_, index, where_ + (path.empty() ? "" : ", " + path));
    lua_pushvalue(L_, index);
    functions.self = Ref(L_);
    if (PartStates::Handle kept = keep_state(std::move(functions), where_, path)) {
      out_.push_back(std::move(kept));
    }
  }

  void visit_list(int index, const std::string& path) {
    const int length = static_cast<int>(lua_objlen(L_, index));
    for (int i = 1; i <= length; ++i) {
      lua_rawgeti(L_, index, i);
      visit(lua_gettop(L_), path + "." + std::to_string(i - 1));
      lua_pop(L_, 1);
    }
  }

  void visit_fields(int index, const std::string& path) {
    std::vector<std::string> names;
    for (lua_pushnil(L_); lua_next(L_, index) != 0; lua_pop(L_, 1)) {
      if (lua_type(L_, -2) == LUA_TSTRING && (module_at(L_, lua_gettop(L_)) != nullptr || is_module_list(L_, lua_gettop(L_)))) {
        names.emplace_back(lua_tostring(L_, -2));
      }
    }
    std::sort(names.begin(), names.end());  // Lua's own order changes from run to run
    for (const std::string& name : names) {
      push(L_, name);
      lua_rawget(L_, index);
      visit(lua_gettop(L_), path.empty() ? name : path + "." + name);
      lua_pop(L_, 1);
    }
  }

  lua_State* L_;
  const std::string& where_;
  std::vector<PartStates::Handle>& out_;
};

}  // namespace

config::Node StateFunctions::save(const std::string& where) const {
  config::Node out;
  try {
    state.runtime().protect([&](lua_State* L) {
      state.push(L);
      if (self) {
        self.push(L);
      }
      lua_call(L, self ? 1 : 0, 1);
      out = read_value(L, -1, {where + ": its state", {}});
    });
  } catch (const Error& error) {
    rethrow_from(error, where, format("in {}, state()", where));
  }
  return out;
}

void StateFunctions::restore(const config::Node& saved, const std::string& where) const {
  try {
    load.runtime().protect([&](lua_State* L) {
      load.push(L);
      if (self) {
        self.push(L);
      }
      push_value(L, saved, where + ": its state");
      lua_call(L, self ? 2 : 1, 0);
    });
  } catch (const Error& error) {
    rethrow_from(error, where, format("in {}, load()", where));
  }
}

StateFunctions read_state_functions(lua_State* L, int index, const std::string& where) {
  StateFunctions out;
  out.state = function_or_nil(L, index, "state", where);
  out.load = function_or_nil(L, index, "load", where);
  KF_CHECK(static_cast<bool>(out.state) == static_cast<bool>(out.load), Code::script,
           "{}: state and load belong together: what state() returns is given to load() when a run goes on; '{}' is missing", where,
           out.state ? "load" : "state");
  return out;
}

PartStates::Handle keep_state(StateFunctions functions, const std::string& where, const std::string& below) {
  if (!functions) {
    return nullptr;
  }
  PartStates* const states = Session::of(functions.state.runtime().state()).states;
  if (states == nullptr) {
    return nullptr;
  }
  const auto shared = std::make_shared<const StateFunctions>(std::move(functions));
  const std::string what = below.empty() ? where : where + ", " + below;
  PartStates::Kept kept;
  kept.state = [shared, what] { return shared->save(what); };
  kept.load = [shared, what](const config::Node& saved) { shared->restore(saved, what); };
  return states->add(state_key(where) + (below.empty() ? "" : ":" + below), std::move(kept));
}

PartStates::Handle keep_state_of(lua_State* L, int index, const std::string& where) {
  return keep_state(read_state_functions(L, index, where), where);
}

void keep_module_states(lua_State* L, int index, const std::string& where, std::vector<PartStates::Handle>& out) {
  ModuleStates(L, where, out).visit(index, "");
}

FunctionPart build_function(const Ref& factory, const std::string& where, const PartArgs& args, const std::function<void(lua_State*)>& fill,
                            const std::string& wanted) {
  Ref value = build(factory, where, args, fill, wanted, is_function_part);
  FunctionPart out;
  value.runtime().protect([&](lua_State* L) {
    value.push(L);
    if (lua_istable(L, -1)) {
      out.kept = keep_state_of(L, lua_gettop(L), where);
      if (!is_callable(L, -1)) {
        check_function_table(L, where);
        lua_rawgeti(L, -1, 1);
      }
    }
    out.function = Ref(L);
  });
  return out;
}

}  // namespace kf::lua
