#include "bindings/job/recipe.h"

#include <algorithm>

#include "bindings/adapters/lua_hook.h"
#include "bindings/adapters/lua_phase.h"
#include "bindings/adapters/register.h"
#include "bindings/session/place.h"
#include "bindings/value/values.h"
#include "bindings/vm/stack.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// "recipe.lua:3" of the first function in the hook table at `index`, else `fallback`.
std::string hook_origin(lua_State* L, int index, const std::string& fallback) {
  for (const std::string_view event : kEventNames) {
    push(L, "on_" + std::string(event));
    lua_rawget(L, index);
    std::string where = lua_isfunction(L, -1) ? definition_position(L, -1) : "";
    lua_pop(L, 1);
    if (!where.empty()) {
      return where;
    }
  }
  return fallback;
}

/// Registers `hooks[number]`, a hook table at `index`, and gives its name.
std::string add_anonymous(lua_State* L, int index, int number, Session& session, const std::string& position, TableHooks& hooks) {
  config::PartInfo info;
  lua_getfield(L, index, "name");
  info.name = lua_isnil(L, -1) ? format("hook {}", number) : check_text(L, -1, format("{}: hooks[{}]", position, number), "name");
  lua_pop(L, 1);
  info.origin = hook_origin(L, index, position);
  info.doc = "A hook of the job's own table.";
  std::string name = info.name;
  add_hook_table(L, index, session, std::move(info));
  hooks.add(name);
  return name;
}

/// { "name", field = value } at `index`: the name, and the fields below <kind>.<name> of the table at `job`.
std::string add_options(lua_State* L, int index, int job, const char* kind, const std::string& where) {
  lua_rawgeti(L, index, 1);
  std::string name = check_text(L, -1, where, format("the name of a {} first", kind));
  lua_pop(L, 1);
  lua_newtable(L);
  const int options = lua_gettop(L);
  bool any = false;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TNUMBER) {
      KF_CHECK(lua_tonumber(L, -2) == 1, Code::script, "{}: after the name come fields, as in { \"{}\", field = value }; got {}", where,
               name, describe(L, -1));
      continue;
    }
    any = true;
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, options);
  }
  if (any) {
    lua_getfield(L, job, kind);
    if (lua_isnil(L, -1)) {
      lua_pop(L, 1);
      lua_newtable(L);
      lua_pushvalue(L, -1);
      lua_setfield(L, job, kind);
    }
    KF_CHECK(lua_istable(L, -1), Code::script, "{}: '{}' must be a table of the parts' own tables, got {}", where, kind, describe(L, -1));
    lua_getfield(L, -1, name.c_str());
    KF_CHECK(lua_isnil(L, -1), Code::script, "{}: the fields of '{}' are given here and in {}.{}; keep one", where, name, kind, name);
    lua_pop(L, 1);
    lua_pushvalue(L, options);
    lua_setfield(L, -2, name.c_str());
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return name;
}

/// A shallow copy of the table at `index`, and of its `hook` and `phase` tables: what is put in belongs to this run only.
void push_copy(lua_State* L, int index) {
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -5);
  }
}

/// How many items the list at `index` has. A name among them or an item behind a gap, as `{ debug and hook or nil, other }` leaves one,
/// would be dropped without a word.
int count_items(lua_State* L, int index, const std::string& place, const char* wanted) {
  const auto count = static_cast<int>(lua_objlen(L, index));
  int entries = 0;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    KF_CHECK(lua_type(L, -2) == LUA_TNUMBER, Code::script, "{}: {}; got the key {}", place, wanted, describe(L, -2));
    ++entries;
  }
  KF_CHECK(entries == count, Code::script, "{}: the list has gaps; leave out items with a condition around table.insert", place);
  return count;
}

/// Turns `hooks` of the table at `job` into a list of names.
void name_hooks(lua_State* L, int job, Session& session, const std::string& position, TableHooks& hooks) {
  lua_getfield(L, job, "hooks");
  const int list = lua_gettop(L);
  if (!lua_istable(L, list)) {  // nil, or wrong in a way that the schema reports
    lua_pop(L, 1);
    return;
  }
  const std::string place = format("{}: hooks", position);
  std::vector<std::string> names;
  const int count = count_items(L, list, place, "a list of hooks is wanted, hooks = { { on_step_end = ... } }");
  for (int i = 1; i <= count; ++i) {
    const std::string where = format("{}[{}]", place, i);
    lua_rawgeti(L, list, i);
    const int item = lua_gettop(L);
    if (lua_type(L, item) == LUA_TSTRING) {
      names.emplace_back(lua_tostring(L, item));
    } else {
      KF_CHECK(lua_istable(L, item), Code::script, "{}: a hook is a table, a name, or { name, field = value }; got {}", where,
               describe(L, item));
      lua_rawgeti(L, item, 1);
      const bool by_name = !lua_isnil(L, -1);
      lua_pop(L, 1);
      names.push_back(by_name ? add_options(L, item, job, "hook", where) : add_anonymous(L, item, i, session, position, hooks));
    }
    KF_CHECK(std::count(names.begin(), names.end(), names.back()) == 1, Code::script, "{}: the hook '{}' is listed twice", where,
             names.back());
    lua_pop(L, 1);
  }
  lua_createtable(L, static_cast<int>(names.size()), 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    push(L, names[i]);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
  lua_setfield(L, job, "hooks");
  lua_pop(L, 1);
}

/// Whether a value of the table at `index` can be called; its place goes to `position`.
bool has_functions(lua_State* L, int index, std::string& position) {
  bool any = false;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (is_callable(L, -1)) {
      any = true;
      position = lua_isfunction(L, -1) && !definition_position(L, -1).empty() ? definition_position(L, -1) : position;
    }
  }
  return any;
}

/// Pushes what stands for `phases[number]`, the item at `index`: functions become a registered phase that the entry names.
void push_phase(lua_State* L, int index, int number, int job, Session& session, std::string position, TableHooks& parts) {
  const std::string where = format("{}: phases[{}]", position, number);
  if (lua_type(L, index) == LUA_TSTRING) {
    lua_newtable(L);
    lua_pushvalue(L, index);
    lua_setfield(L, -2, "phase");
    return;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: a phase is a table, a name, or { name, field = value }; got {}", where,
           describe(L, index));
  lua_rawgeti(L, index, 1);
  const bool by_name = !lua_isnil(L, -1);
  lua_pop(L, 1);
  if (by_name) {
    const std::string name = add_options(L, index, job, "phase", where);
    lua_newtable(L);
    set(L, "phase", std::string_view(name));
    return;
  }
  if (!has_functions(L, index, position)) {
    lua_pushvalue(L, index);
    return;
  }
  config::PartInfo info;
  info.name = format("phase {}", number);
  info.origin = position;
  info.doc = "A phase of the job's own table.";
  add_phase_table(L, index, session, info);
  parts.add_phase(info.name);
  push_copy(L, index);
  const int entry = lua_gettop(L);
  lua_getfield(L, entry, "phase");
  KF_CHECK(lua_isnil(L, -1), Code::script, "{}: it has functions of its own and names a registered phase; keep one", where);
  lua_pop(L, 1);
  for (lua_pushnil(L); lua_next(L, entry) != 0; lua_pop(L, 1)) {  // the registered phase has looked at its functions
    if (is_callable(L, -1)) {
      lua_pushvalue(L, -2);
      lua_pushnil(L);
      lua_rawset(L, entry);
    }
  }
  set(L, "phase", std::string_view(info.name));
}

/// Turns `phases` of the table at `job` into entries without functions.
void name_phases(lua_State* L, int job, Session& session, const std::string& position, TableHooks& parts) {
  lua_getfield(L, job, "phases");
  const int list = lua_gettop(L);
  if (!lua_istable(L, list)) {  // nil, or wrong in a way that the schema reports
    lua_pop(L, 1);
    return;
  }
  // Without items it is one phase by itself, or wrong in a way that the schema reports.
  const int count = lua_objlen(L, list) == 0 ? 0 : count_items(L, list, format("{}: phases", position), "a list of phases is wanted");
  lua_createtable(L, count, 0);
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(L, list, i);
    push_phase(L, lua_gettop(L), i, job, session, position, parts);
    lua_rawseti(L, list + 1, i);
    lua_settop(L, list + 1);
  }
  if (count > 0) {
    lua_setfield(L, job, "phases");
  } else {
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

}  // namespace

TableHooks::~TableHooks() {
  for (const std::string& name : names_) {
    session_.registries.hook.remove(name);
  }
  for (const std::string& name : phases_) {
    session_.registries.phase.remove(name);
  }
}

config::Node read_recipe(lua_State* L, int index, Session& session, const std::string& file, int line, TableHooks& hooks,
                         const std::vector<std::string>& inside) {
  const std::string position = format("{}:{}", file, line);
  push_copy(L, index);
  const int job = lua_gettop(L);
  for (const char* kind : {"hook", "phase"}) {
    lua_getfield(L, job, kind);
    if (lua_istable(L, -1)) {
      push_copy(L, lua_gettop(L));
      lua_setfield(L, job, kind);
    }
    lua_pop(L, 1);
  }
  name_hooks(L, job, session, position, hooks);
  name_phases(L, job, session, position, hooks);
  ReadOptions options;
  options.what = "the job";
  options.locate = [&](const std::vector<std::string>& path) {
    std::vector<std::string> whole = inside;
    whole.insert(whole.end(), path.begin(), path.end());
    return places_of(session, file, line, std::move(whole));
  };
  config::Node node = read_value(L, job, options);
  lua_pop(L, 1);
  if (config::Table* table = node.table(); !table) {
    KF_CHECK(node.array() == nullptr, Code::script, "{}: a job is a table of sections, { model = { ... }, ... }, not a list", position);
  }
  return node;
}

}  // namespace kf::lua
