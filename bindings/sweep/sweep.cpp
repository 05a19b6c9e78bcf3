#include "bindings/sweep/sweep.h"

#include <algorithm>
#include <array>
#include <utility>

#include "bindings/context/rows.h"
#include "bindings/job/recipe.h"
#include "bindings/session/place.h"
#include "bindings/session/session.h"
#include "bindings/sweep/sweep_space.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/text.h"

namespace kf::lua {
namespace {

using sweep::Definition;
using sweep::Method;

constexpr char kMetatable[] = "kf.sweep";

/// Reads the table at stack index 1, key by key.
class SweepReader {
 public:
  SweepReader(lua_State* L, SweepPlace place, LuaSweep& out) : L_(L), place_(std::move(place)), out_(out), definition_(out.definition) {}

  void read() {
    definition_.place = place_.at({});
    check_keys();
    base();
    method();
    if (definition_.method == Method::list) {
      list();
    } else if (has("space")) {
      KF_CHECK(lua_istable(L_, -1), Code::script, "{}expected a table, { [\"optimizer.lr\"] = kf.loguniform(1e-4, 1e-2) }, got {}",
               place_.prefix({"space"}), describe(L_, -1));
      definition_.space = read_space(L_, lua_gettop(L_), place_, definition_);
    }
    KF_CHECK(definition_.method == Method::function || definition_.method == Method::list || !definition_.space.empty(), Code::script,
             "{}there is nothing to vary; write [\"optimizer.lr\"] = kf.loguniform(1e-4, 1e-2)", place_.prefix({"space"}));
    counts();
    isolate();
    objective();
    prune();
    if (has("adjust")) {
      KF_CHECK(lua_isfunction(L_, -1), Code::script, "{}expected a function(c), got {}", place_.prefix({"adjust"}), describe(L_, -1));
      definition_.adjust = make_adjust(L_, lua_gettop(L_), place_, definition_);
    }
  }

 private:
  static const std::vector<std::string>& keys() {
    static const std::vector<std::string> names{"base",      "space",    "method", "trials",  "seed",   "objective",
                                                "direction", "parallel", "ranks",  "isolate", "adjust", "prune"};
    return names;
  }

  void check_keys() const {
    for (lua_pushnil(L_); lua_next(L_, 1) != 0; lua_pop(L_, 1)) {
      const std::string key = lua_type(L_, -2) == LUA_TSTRING ? lua_tostring(L_, -2) : describe(L_, -2);
      const bool known = std::find(keys().begin(), keys().end(), key) != keys().end();
      KF_CHECK(known, Code::script, "{}: kf.sweep: unknown key '{}'{}", config::to_text(place_.at({key})), key, suggestion(key, keys()));
    }
  }

  /// Leaves the value of `key` on top; false for nil.
  bool has(const char* key) {
    lua_settop(L_, 1);
    lua_getfield(L_, 1, key);
    return !lua_isnil(L_, -1);
  }

  void base() {
    KF_CHECK(has("base"), Code::script, "{}base is missing: the job that all trials start from, base = \"job.toml\" or a table",
             place_.prefix({}));
    if (lua_type(L_, -1) == LUA_TSTRING) {
      const config::Origin origin = place_.at({"base"});
      config::Table table;
      table["extends"] = config::Node(std::string(lua_tostring(L_, -1)), origin);
      definition_.base = config::Node(std::move(table), origin);
      return;
    }
    KF_CHECK(lua_istable(L_, -1), Code::script, "{}expected the name of a file or a table (a job), got {}", place_.prefix({"base"}),
             describe(L_, -1));
    TableHooks hooks(place_.session);
    definition_.base = read_recipe(L_, lua_gettop(L_), place_.session, place_.file, place_.line, hooks, {"base"});
    hooks.keep();
  }

  void method() {
    KF_CHECK(has("method"), Code::script, "{}method is missing: \"grid\", \"random\", \"list\", \"tpe\", \"asha\" or a function",
             place_.prefix({}));
    if (lua_isfunction(L_, -1)) {
      definition_.method = Method::function;
      definition_.suggest = make_suggest(L_, lua_gettop(L_), place_);
      return;
    }
    std::vector<std::string> names;
    for (const Method method : {Method::grid, Method::random, Method::list, Method::tpe, Method::asha}) {
      names.push_back(sweep::method_name(method));
    }
    KF_CHECK(lua_type(L_, -1) == LUA_TSTRING, Code::script, "{}expected {} or a function, got {}", place_.prefix({"method"}),
             join(names, ", "), describe(L_, -1));
    const std::string name = lua_tostring(L_, -1);
    const auto found = std::find(names.begin(), names.end(), name);
    const std::string near = nearest(name, names);
    KF_CHECK(found != names.end(), Code::script, "{}no method '{}'{}; have: {}, or a function", place_.prefix({"method"}), name,
             near.empty() ? "" : "; did you mean '" + near + "'?", join(names, ", "));
    definition_.method = static_cast<Method>(found - names.begin());
  }

  void list() {
    KF_CHECK(has("space") && lua_istable(L_, -1) && lua_objlen(L_, -1) > 0, Code::script,
             "{}method \"list\" takes a list of tables: { { [\"optimizer.lr\"] = 1e-3 }, { ... } }; got {}", place_.prefix({"space"}),
             describe(L_, -1));
    const int rows = lua_gettop(L_);
    const int count = static_cast<int>(lua_objlen(L_, rows));
    for (lua_pushnil(L_); lua_next(L_, rows) != 0; lua_pop(L_, 1)) {
      KF_CHECK(lua_type(L_, -2) == LUA_TNUMBER, Code::script, "{}method \"list\" takes a list of tables, it has the key {}",
               place_.prefix({"space"}), describe(L_, -2));
    }
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(L_, rows, i);
      definition_.list.push_back(read_values(L_, lua_gettop(L_), place_, {"space", std::to_string(i)}));
      lua_pop(L_, 1);
    }
  }

  std::optional<std::int64_t> count(const char* key, std::int64_t least) {
    if (!has(key)) {
      return std::nullopt;
    }
    const auto value = exact_integer(L_, -1);
    KF_CHECK(value && *value >= least, Code::script, "{}must be a whole number from {} on, got {}", place_.prefix({key}), least,
             describe(L_, -1));
    return value;
  }

  void counts() {
    definition_.trials = count("trials", 1);
    const Method method = definition_.method;
    const bool endless = method == Method::random || method == Method::tpe || method == Method::asha;
    KF_CHECK(definition_.trials || !endless, Code::script, "{}trials is missing: how many runs, trials = 40 (method \"{}\" has no end)",
             place_.prefix({}), sweep::method_name(method));
    definition_.parallel = count("parallel", 1).value_or(1);
    definition_.ranks = count("ranks", 1).value_or(1);
    definition_.seed = static_cast<std::uint64_t>(count("seed", 0).value_or(0));
  }

  /// Trials in the worker's own process are one at a time, and of one process.
  void isolate() {
    if (!has("isolate")) {
      return;
    }
    KF_CHECK(lua_isboolean(L_, -1), Code::script, "{}expected true or false, got {}", place_.prefix({"isolate"}), describe(L_, -1));
    definition_.isolate = lua_toboolean(L_, -1) != 0;
    definition_.isolate_place = place_.at({"isolate"});
    for (const auto& [key, value] : {std::pair("parallel", definition_.parallel), std::pair("ranks", definition_.ranks)}) {
      KF_CHECK(definition_.isolate || value == 1, Code::script,
               "{}{} with isolate = false: trials then run one after another in the process of the sweep, so {} must be 1; for {} leave "
               "isolate out",
               place_.prefix({key}), value, key, value);
    }
  }

  void objective() {
    if (has("objective")) {
      if (lua_isfunction(L_, -1)) {
        out_.objective = Ref(L_);
        definition_.objective = "function";
      } else {
        KF_CHECK(lua_type(L_, -1) == LUA_TSTRING, Code::script, "{}expected a name (\"eval.loss\") or a function(result), got {}",
                 place_.prefix({"objective"}), describe(L_, -1));
        definition_.objective = lua_tostring(L_, -1);
        check_objective(definition_.objective);
      }
    }
    if (has("direction")) {
      const bool text = lua_type(L_, -1) == LUA_TSTRING;
      const std::string word = text ? lua_tostring(L_, -1) : "";
      KF_CHECK(word == "min" || word == "max", Code::script, "{}must be \"min\" or \"max\", got {}", place_.prefix({"direction"}),
               describe(L_, -1));
      definition_.maximise = word == "max";
    }
  }

  /// A slip in a name that a result always has. Evaluations may hold more than the program's own numbers.
  void check_objective(const std::string& name) const {
    const std::vector<std::string> names{"eval.loss", "eval.perplexity", "eval.bits_per_byte", "eval.accuracy", "loss", "steps",
                                         "tokens",    "seconds"};
    const bool of_a_set = name.starts_with("eval.") && name.rfind('.') > 4;
    const bool known = of_a_set || std::find(names.begin(), names.end(), name) != names.end();
    const std::string near = known ? "" : nearest(name, names);
    KF_CHECK(known || (near.empty() && name.starts_with("eval.")), Code::script,
             "{}a result has no '{}'{}; have: {}, or a function(result)", place_.prefix({"objective"}), name,
             near.empty() ? "" : "; did you mean '" + near + "'?", join(names, ", "));
  }

  void prune() {
    const bool asha = definition_.method == Method::asha;
    if (!has("prune")) {
      if (asha) {
        definition_.prune = sweep::AshaOptions{0, 4};
      }
      return;
    }
    const std::string where = place_.prefix({"prune"});
    if (lua_isboolean(L_, -1)) {
      const bool wanted = lua_toboolean(L_, -1) != 0;
      KF_CHECK(wanted || !asha, Code::script, "{}method \"asha\" is pruning; for none take method = \"random\"", where);
      definition_.prune = wanted ? std::optional(sweep::AshaOptions{0, 4}) : std::nullopt;
      return;
    }
    KF_CHECK(lua_istable(L_, -1), Code::script, "{}expected true, false or { min_resource = steps, reduction_factor = 4 }, got {}", where,
             describe(L_, -1));
    definition_.prune = prune_table(where);
  }

  sweep::AshaOptions prune_table(const std::string& where) const {
    const std::vector<std::string> names{"min_resource", "reduction_factor"};
    const std::array<std::int64_t, 2> least{1, 2};
    sweep::AshaOptions options{0, 4};
    const int table = lua_gettop(L_);
    for (lua_pushnil(L_); lua_next(L_, table) != 0; lua_pop(L_, 1)) {
      const std::string key = lua_type(L_, -2) == LUA_TSTRING ? lua_tostring(L_, -2) : describe(L_, -2);
      const auto found = std::find(names.begin(), names.end(), key);
      KF_CHECK(found != names.end(), Code::script, "{}unknown key '{}'{}", where, key, suggestion(key, names));
      const auto place = static_cast<std::size_t>(found - names.begin());
      const auto value = exact_integer(L_, -1);
      KF_CHECK(value && *value >= least[place], Code::script, "{}{} must be a whole number from {} on, got {}", where, key, least[place],
               describe(L_, -1));
      (place == 0 ? options.min_resource : options.reduction_factor) = *value;
    }
    return options;
  }

  lua_State* L_;
  SweepPlace place_;
  LuaSweep& out_;
  Definition& definition_;
};

int sweep_tostring(lua_State* L) {
  push(L, std::string_view("a sweep: return it from the script"));
  return 1;
}

int sweep_index(lua_State* L) { fail(Code::script, "a sweep has no fields (asked for {}); return it from the script", describe(L, 2)); }

void push_sweep(lua_State* L, std::size_t number) {
  *static_cast<std::size_t*>(lua_newuserdata(L, sizeof(std::size_t))) = number;
  if (luaL_newmetatable(L, kMetatable) != 0) {
    lua_pushcfunction(L, &guarded<sweep_tostring>);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, &guarded<sweep_index>);
    lua_setfield(L, -2, "__index");
    set(L, "__metatable", std::string_view("sweep"));
  }
  lua_setmetatable(L, -2);
}

}  // namespace

int make_sweep(lua_State* L) {
  Session& session = Session::of(L);
  auto [file, line] = call_place(L, session);
  if (line == 0) {  // `return kf.sweep{...}` is a tail call, which leaves no frame
    const SourceMap* map = session.source_of(file);
    line = map ? map->return_line() : 0;
  }
  KF_CHECK(lua_istable(L, 1), Code::script, "{}:{}: kf.sweep: expected a table, kf.sweep({ base = ..., space = ... }), got {}", file, line,
           describe(L, 1));
  auto sweep = std::make_unique<LuaSweep>();
  SweepReader(L, {session, file, line}, *sweep).read();
  session.sweeps.push_back(std::move(sweep));
  push_sweep(L, session.sweeps.size() - 1);
  return 1;
}

LuaSweep* to_sweep(lua_State* L, int index, Session& session) {
  const void* number = lua_touserdata(L, index);
  if (!number || lua_getmetatable(L, index) == 0) {
    return nullptr;
  }
  luaL_getmetatable(L, kMetatable);
  const bool same = lua_rawequal(L, -1, -2) != 0;
  lua_pop(L, 2);
  return same ? session.sweeps.at(*static_cast<const std::size_t*>(number)).get() : nullptr;
}

double objective_of(lua_State* L, const LuaSweep& sweep, const RunResult& result) {
  const StackTop top(L);
  const std::string place = config::to_text(sweep.definition.place);
  if (sweep.objective) {
    sweep.objective.push(L);
    push_result(L, result);
    lua_call(L, 1, 1);
    KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "{}: kf.sweep: objective must return a number, got {}", place, describe(L, -1));
    return lua_tonumber(L, -1);
  }
  push_result(L, result);
  for (const std::string& name : split(sweep.definition.objective, '.')) {
    if (lua_istable(L, -1)) {
      lua_getfield(L, -1, name.c_str());
    }
  }
  KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "{}: kf.sweep: the result has no number '{}'", place, sweep.definition.objective);
  return lua_tonumber(L, -1);
}

}  // namespace kf::lua
