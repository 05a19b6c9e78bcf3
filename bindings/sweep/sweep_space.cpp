#include "bindings/sweep/sweep_space.h"

#include <algorithm>
#include <memory>

#include "bindings/job/recipe.h"
#include "bindings/session/place.h"
#include "bindings/value/values.h"
#include "bindings/vm/stack.h"
#include "config/schema/schema.h"
#include "config/tree/json.h"
#include "core/text.h"

namespace kf::lua {
namespace {

using config::Node;
using config::Table;
using sweep::Choice;
using sweep::Distribution;
using sweep::Entry;
using sweep::Option;
using Path = std::vector<std::string>;

int absolute(lua_State* L, int index) { return index < 0 ? lua_gettop(L) + index + 1 : index; }

Path with(Path path, std::string last) {
  path.push_back(std::move(last));
  return path;
}

bool is_distribution(lua_State* L, int index) {
  if (luaL_getmetafield(L, index, "__kf_distribution") == 0) {
    return false;
  }
  lua_pop(L, 1);
  return true;
}

/// A table with names, which may hold further entries: no list, no distribution.
bool is_group(lua_State* L, int index) { return lua_istable(L, index) && lua_objlen(L, index) == 0 && !is_distribution(L, index); }

double number_field(lua_State* L, int index, const char* name, double fallback) {
  lua_getfield(L, index, name);
  const double value = lua_isnil(L, -1) ? fallback : lua_tonumber(L, -1);
  lua_pop(L, 1);
  return value;
}

std::string kind_of(lua_State* L, int index) {
  lua_getfield(L, index, "kind");
  const char* text = lua_tostring(L, -1);
  std::string out = text ? text : "";
  lua_pop(L, 1);
  return out;
}

/// Optuna's choices are scalars; a list stands there as its text.
Node label_of(const Node& value) { return value.array() || value.table() ? Node(config::to_json(value)) : Node(value.value); }

class SpaceReader {
 public:
  SpaceReader(lua_State* L, const SweepPlace& place, const sweep::Definition& definition) : L_(L), place_(place), definition_(definition) {}

  /// The named entries of the table at `index` below `key`, and at the top level the unnamed choices between groups.
  std::vector<Entry> table(int index, const std::string& key, const Path& path) {
    index = absolute(L_, index);
    luaL_checkstack(L_, 8, "a deeply nested space");
    std::vector<Entry> out;
    int unnamed = 0;
    for (lua_pushnil(L_); lua_next(L_, index) != 0; lua_pop(L_, 1)) {
      if (lua_type(L_, -2) == LUA_TNUMBER) {
        out.push_back(unnamed_choice(++unnamed, path));
        continue;
      }
      KF_CHECK(lua_type(L_, -2) == LUA_TSTRING, Code::script, "{}expected names of settings as keys, got {}", place_.prefix(path),
               describe(L_, -2));
      const std::string name = lua_tostring(L_, -2);
      for (Entry& entry : value(-1, key.empty() ? name : key + "." + name, with(path, name))) {
        out.push_back(std::move(entry));
      }
    }
    std::stable_sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    refuse_twice(out, path);
    return out;
  }

  /// One value of the space: what stands under a key.
  std::vector<Entry> value(int index, const std::string& key, const Path& path) {
    index = absolute(L_, index);
    if (lua_isfunction(L_, index)) {
      return {{key, key, place_.at(path), computed(index, key, path)}};
    }
    if (is_distribution(L_, index)) {
      return {distribution(index, key, path)};
    }
    if (is_group(L_, index) && config::find_row(key) == nullptr) {
      return table(index, key, path);
    }
    return {{key, key, place_.at(path), constant(index, path)}};
  }

 private:
  Node constant(int index, const Path& path) const {
    ReadOptions options;
    options.what = "the space";
    options.locate = [&](const Path& below) {
      Path whole = path;
      whole.insert(whole.end(), below.begin(), below.end());
      const config::Origin origin = place_.at(whole);
      return Origins{origin, origin};
    };
    return read_value(L_, index, options);
  }

  Entry distribution(int index, const std::string& key, const Path& path) {
    const std::string kind = kind_of(L_, index);
    if (kind == "choice") {
      return {key, key, place_.at(path), choice(index, key, path)};
    }
    const double low = number_field(L_, index, "low", 0);
    const double high = number_field(L_, index, "high", 0);
    const bool log = kind.starts_with("log");
    if (kind.ends_with("randint")) {
      const double step = number_field(L_, index, "step", 1);
      return {key, key, place_.at(path),
              Distribution::integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), static_cast<std::int64_t>(step), log)};
    }
    return {key, key, place_.at(path), Distribution::real(low, high, number_field(L_, index, "step", 0), log)};
  }

  std::shared_ptr<const Choice> choice(int index, const std::string& key, const Path& path) {
    auto out = std::make_shared<Choice>();
    lua_getfield(L_, index, "options");
    const int list = lua_gettop(L_);
    const int count = static_cast<int>(lua_objlen(L_, list));
    std::vector<Node> labels;
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(L_, list, i);
      Option option = read_option(key, i, path);
      Node label = option.group ? group_label(option) : label_of(option.value);
      if (std::find(labels.begin(), labels.end(), label) != labels.end()) {
        KF_CHECK(option.group, Code::script, "{}kf.choice holds {} twice", place_.prefix(path), config::brief(label));
        label = Node(format("{} #{}", std::get<std::string>(label.value), i));
      }
      labels.push_back(std::move(label));
      out->options.push_back(std::move(option));
      lua_pop(L_, 1);
    }
    lua_pop(L_, 1);
    out->labels = Distribution::choice(std::move(labels));
    return out;
  }

  /// The value on top, one of a choice.
  Option read_option(const std::string& key, int number, const Path& path) {
    const int index = lua_gettop(L_);
    KF_CHECK(!lua_isfunction(L_, index), Code::script, "{}a function stands for a setting, not among the values of kf.choice",
             place_.prefix(path));
    Option option;
    if (is_distribution(L_, index)) {
      option.group = true;
      Entry entry = distribution(index, key, path);
      entry.name = format("{} [{}]", key, number);
      option.entries.push_back(std::move(entry));
    } else if (is_group(L_, index) && (key.empty() || config::find_row(key) == nullptr)) {
      option.group = true;
      option.entries = table(index, key, path);
    } else {
      KF_CHECK(!key.empty(), Code::script, "{}a choice without a name is between tables of settings; got {}", place_.prefix(path),
               describe(L_, index));
      option.value = constant(index, path);
    }
    return option;
  }

  /// "optimizer.name=lion", from what is fixed in the group; else the names in it.
  static Node group_label(const Option& option) {
    std::vector<std::string> fixed;
    std::vector<std::string> names;
    for (const Entry& entry : option.entries) {
      names.push_back(entry.name);
      if (const auto* node = std::get_if<Node>(&entry.rule)) {
        const auto* text = std::get_if<std::string>(&node->value);
        fixed.push_back(entry.name + "=" + (text ? *text : config::to_json(*node)));
      }
    }
    return Node(names.empty() ? std::string("nothing") : join(fixed.empty() ? names : fixed, ", "));
  }

  Entry unnamed_choice(int number, const Path& path) {
    KF_CHECK(path.size() == 1, Code::script, "{}expected names of settings as keys, got item {}", place_.prefix(path), number);
    const int index = lua_gettop(L_);
    KF_CHECK(is_distribution(L_, index) && kind_of(L_, index) == "choice", Code::script,
             "{}without a name there is only kf.choice of tables of settings, got {}", place_.prefix(path), describe(L_, index));
    return {format("choice {}", number), "", place_.at(path), choice(index, "", path)};
  }

  sweep::Computed computed(int index, const std::string& key, const Path& path) {
    lua_pushvalue(L_, index);
    const auto function = std::make_shared<Ref>(L_);
    return [function, key, path, place = place_, &definition = definition_](const Table& values) {
      std::optional<Entry> out;
      function->runtime().protect([&](lua_State* L) {
        Table tree = definition.base_tree;
        for (const auto& [name, node] : values) {
          sweep::set_at(tree, name, node);
        }
        function->push(L);
        push_value(L, tree, "c");
        lua_call(L, 1, 1);
        if (lua_isnil(L, -1)) {
          return;
        }
        std::vector<Entry> entries = SpaceReader(L, place, definition).value(-1, key, path);
        KF_CHECK(entries.size() == 1 && !std::holds_alternative<sweep::Computed>(entries[0].rule), Code::script,
                 "{}the function must return one value or distribution, or nil; got {}", place.prefix(path), describe(L, -1));
        out = std::move(entries[0]);
      });
      return out;
    };
  }

  void refuse_twice(const std::vector<Entry>& entries, const Path& path) const {
    for (std::size_t i = 1; i < entries.size(); ++i) {
      KF_CHECK(entries[i].name != entries[i - 1].name, Code::script, "{}'{}' stands there twice", place_.prefix(path), entries[i].name);
    }
  }

  lua_State* L_;
  const SweepPlace place_;
  const sweep::Definition& definition_;
};

std::optional<double> number_of(const Node& node) {
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    return static_cast<double>(*integer);
  }
  const auto* real = std::get_if<double>(&node.value);
  return real ? std::optional(*real) : std::nullopt;
}

bool is_empty(const Node& node) {
  return node.is_null() || (node.array() && node.array()->empty()) || (node.table() && node.table()->empty());
}

/// Whether a value came back from Lua as it went in: Lua knows neither 2 from 2.0 nor an empty list from an empty table.
bool same(const Node& a, const Node& b) {
  if (const auto x = number_of(a), y = number_of(b); x && y) {
    return *x == *y;
  }
  if (a.array() && b.array()) {
    return std::equal(a.array()->begin(), a.array()->end(), b.array()->begin(), b.array()->end(), same);
  }
  return (is_empty(a) && is_empty(b)) || a == b;
}

/// Settings that differ between the tree that went into Lua and the one that came back.
void collect_changes(const Table& before, const Table& after, const std::string& inside, const std::string& where, Table& changes) {
  for (const auto& [name, node] : after) {
    const std::string key = inside.empty() ? name : inside + "." + name;
    const Node* old = before.find(name);
    if (old && old->table() && node.table() && config::find_row(key) == nullptr) {
      collect_changes(*old->table(), *node.table(), key, where, changes);
    } else if (!old || !same(*old, node)) {
      KF_CHECK(old || inside.empty() || !config::is_section(inside) || node.table(), Code::script, "{}adjust set '{}', which is no setting",
               where, key);
      changes[key] = node;
    }
  }
  for (const auto& [name, node] : before) {
    KF_CHECK(after.find(name) || is_empty(node), Code::script, "{}adjust set '{}' to nil; give it a value, or return false", where,
             inside.empty() ? name : inside + "." + name);
  }
}

void flatten(const Table& table, const std::string& inside, Table& out) {
  for (const auto& [name, node] : table) {
    const std::string key = inside.empty() ? name : inside + "." + name;
    if (node.table() && !node.table()->empty() && config::find_row(key) == nullptr) {
      flatten(*node.table(), key, out);
    } else {
      out[key] = node;
    }
  }
}

void push_trial(lua_State* L, const sweep::Trial& trial) {
  lua_createtable(L, 0, 4);
  set(L, "number", static_cast<double>(trial.number));
  set(L, "state", std::string_view(lower(sweep::state_name(trial.state))));
  if (trial.value) {
    set(L, "value", *trial.value);
  }
  lua_newtable(L);
  for (const sweep::Parameter& p : trial.parameters) {
    push(L, p.name);
    push_value(L, p.value(), p.name);
    lua_rawset(L, -3);
  }
  lua_setfield(L, -2, "params");
}

}  // namespace

config::Origin SweepPlace::at(const std::vector<std::string>& path) const { return places_of(session, file, line, path).key; }

std::string SweepPlace::prefix(const std::vector<std::string>& path) const {
  return format("{}: kf.sweep: {}{}", config::to_text(at(path)), join(path, ": "), path.empty() ? "" : ": ");
}

std::vector<Entry> read_space(lua_State* L, int index, const SweepPlace& place, const sweep::Definition& definition) {
  return SpaceReader(L, place, definition).table(index, "", {"space"});
}

Table read_values(lua_State* L, int index, const SweepPlace& place, const std::vector<std::string>& path) {
  KF_CHECK(lua_istable(L, index), Code::script, "{}expected a table of settings, got {}", place.prefix(path), describe(L, index));
  ReadOptions options;
  options.what = "the values";
  options.locate = [&](const Path& below) {
    Path whole = path;
    whole.insert(whole.end(), below.begin(), below.end());
    const config::Origin origin = place.at(whole);
    return Origins{origin, origin};
  };
  const Node node = read_value(L, index, options);
  KF_CHECK(node.table() && !node.table()->empty(), Code::script, "{}expected a table of settings, { [\"optimizer.lr\"] = 1e-3 }",
           place.prefix(path));
  Table out;
  flatten(*node.table(), "", out);
  return out;
}

std::function<bool(Table&)> make_adjust(lua_State* L, int index, const SweepPlace& place, const sweep::Definition& definition) {
  lua_pushvalue(L, index);
  const auto function = std::make_shared<Ref>(L);
  return [function, place, &definition](Table& values) {
    bool accepted = true;
    function->runtime().protect([&](lua_State* state) {
      Table tree = definition.base_tree;
      for (const auto& [name, node] : values) {
        sweep::set_at(tree, name, node);
      }
      function->push(state);
      push_value(state, tree, "c");
      lua_pushvalue(state, -1);
      lua_insert(state, -3);
      lua_call(state, 1, 1);
      const std::string where = place.prefix({"adjust"});
      KF_CHECK(lua_isnil(state, -1) || lua_isboolean(state, -1), Code::script,
               "{}it changes c and returns nothing, or true or false (reject); got {}", where, describe(state, -1));
      accepted = lua_isnil(state, -1) || lua_toboolean(state, -1) != 0;
      lua_pop(state, 1);
      if (accepted) {
        const Node after = read_value(state, -1, {"c, as adjust left it,", {}});
        Table changes;
        collect_changes(tree, *after.table(), "", where, changes);
        for (const auto& [key, node] : changes) {
          values[key] = node;
          values[key].origin = values[key].key_origin = place.at({"adjust"});
        }
      }
    });
    return accepted;
  };
}

std::function<std::optional<Table>(std::int64_t, const std::vector<sweep::Trial>&)> make_suggest(lua_State* L, int index,
                                                                                                 const SweepPlace& place) {
  lua_pushvalue(L, index);
  const auto function = std::make_shared<Ref>(L);
  return [function, place](std::int64_t number, const std::vector<sweep::Trial>& trials) {
    std::optional<Table> out;
    function->runtime().protect([&](lua_State* state) {
      function->push(state);
      lua_pushnumber(state, static_cast<double>(number));
      lua_createtable(state, static_cast<int>(trials.size()), 0);
      for (std::size_t i = 0; i < trials.size(); ++i) {
        push_trial(state, trials[i]);
        lua_rawseti(state, -2, static_cast<int>(i + 1));
      }
      lua_call(state, 2, 1);
      if (!lua_isnil(state, -1)) {
        out = read_values(state, lua_gettop(state), place, {"method"});
      }
    });
    return out;
  };
}

}  // namespace kf::lua
