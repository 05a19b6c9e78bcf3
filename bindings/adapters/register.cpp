#include "bindings/adapters/register.h"

#include <algorithm>

#include "bindings/adapters/lua_data.h"
#include "bindings/adapters/lua_hook.h"
#include "bindings/adapters/lua_layers.h"
#include "bindings/adapters/lua_loss.h"
#include "bindings/adapters/lua_optimizer.h"
#include "bindings/adapters/lua_phase.h"
#include "bindings/adapters/lua_router.h"
#include "bindings/adapters/lua_run_parts.h"
#include "bindings/adapters/lua_sampler.h"
#include "bindings/adapters/lua_schedule.h"
#include "bindings/value/values.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "config/schema/schema.h"
#include "core/text.h"

namespace kf::lua {
namespace {

/// Adds the part whose factory is at stack index 2.
using Adapter = void (*)(lua_State* L, Session& session, config::PartInfo info);

struct Kind {
  const char* name;
  Adapter add;
};

/// The adapter of every kind of kinds.def is add_<kind>; one that is missing does not compile.
constexpr Kind kAdapters[] = {
#define KIND(name, product, more, chosen_by) {#name, add_##name},
#include "registry/kinds.def"
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kAdapters) {
    names.emplace_back(kind.name);
  }
  return names;
}

/// A name that can be a bare TOML key and part of an option: [scheduler.inverse_sqrt], --scheduler.inverse_sqrt.floor=0.
bool is_part_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
  });
}

/// kf.register.<kind>(name, factory, options); the kind is upvalue 1.
int register_part(lua_State* L) {
  const auto* kind = static_cast<const Kind*>(lua_touserdata(L, lua_upvalueindex(1)));
  const std::string where = format("kf.register.{}", kind->name);
  Session& session = Session::of(L);
  check_may_register(session, where);
  lua_settop(L, 3);
  config::PartInfo info;
  info.name = check_text(L, 1, where, "a name");
  KF_CHECK(is_part_name(info.name), Code::script, "{}: the name {} must be letters, digits, '_' and '-', as in [{}.my_part]", where,
           kf::quoted(info.name), kind->name);
  info.origin = caller_position(L);
  if (info.origin.empty()) {
    info.origin = session.script;
  }
  read_part_options(L, 3, where, info);
  KF_CHECK(info.fields.empty() || config::find_row(format("{}.{}", kind->name, info.name)) == nullptr, Code::script,
           "{}: [{}] has a key '{}' of its own, so the fields of this part would have no place; give it another name", where, kind->name,
           info.name);
  kind->add(L, session, std::move(info));
  return 0;
}

/// kf.register[kind]
int register_index(lua_State* L) {
  const std::string name = check_text(L, 2, "kf.register", "a kind");
  for (const Kind& kind : kAdapters) {
    if (name == kind.name) {
      lua_pushlightuserdata(L, const_cast<Kind*>(&kind));
      lua_pushcclosure(L, &guarded<register_part>, 1);
      return 1;
    }
  }
  fail(Code::script, "no kind '{}'{}", name, suggestion(name, kind_names()));
}

int register_newindex(lua_State* L) {
  fail(Code::script, "kf.register is read-only; write kf.register.<kind>(name, factory), got an assignment to {}", describe(L, 2));
}

// --- rows of `fields` ---

const std::vector<std::pair<std::string, config::PartField::Type>>& field_types() {
  using Type = config::PartField::Type;
  static const std::vector<std::pair<std::string, Type>> types = {
      {"int", Type::integer}, {"float", Type::real}, {"bool", Type::boolean}, {"string", Type::string}, {"list", Type::list}};
  return types;
}

config::PartField::Type field_type(const std::string& word, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& [name, type] : field_types()) {
    if (name == word) {
      return type;
    }
    names.push_back(name);
  }
  fail(Code::script, "{}: no type '{}'{}", where, word, suggestion(word, names));
}

/// Every key of the table at `index` must be one of `names` (or an item 1 to `items`).
void check_keys(lua_State* L, int index, const std::vector<std::string>& names, int items, const std::string& where) {
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TNUMBER) {
      const double item = lua_tonumber(L, -2);
      KF_CHECK(item >= 1 && item <= items, Code::script, "{}: there is no place for item {} ({})", where, item, describe(L, -1));
      continue;
    }
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    const bool known = std::find(names.begin(), names.end(), key) != names.end();
    KF_CHECK(known, Code::script, "{}: unknown key '{}'{}", where, key, suggestion(key, names));
  }
}

/// The text t[key] of the table at `index`, or "" where it is nil.
std::string text_field(lua_State* L, int index, const char* key, const std::string& where) {
  lua_getfield(L, index, key);
  std::string out;
  if (!lua_isnil(L, -1)) {
    out = check_text(L, -1, where, key);
  }
  lua_pop(L, 1);
  return out;
}

/// A value of the row's type, with the bounds and choices that the row has so far.
config::Node read_default(lua_State* L, int index, const config::PartField& field, const std::string& where) {
  using Type = config::PartField::Type;
  config::Node node = read_value(L, index, {where + ": default", {}});
  const bool integer = std::holds_alternative<std::int64_t>(node.value);
  if (field.type == Type::real && integer) {
    node.value = static_cast<double>(std::get<std::int64_t>(node.value));
  }
  if (field.type == Type::list && node.table() && node.table()->empty()) {
    node.value = config::Array{};
  }
  const bool fits = field.type == Type::integer   ? integer
                    : field.type == Type::real    ? std::holds_alternative<double>(node.value)
                    : field.type == Type::boolean ? std::holds_alternative<bool>(node.value)
                    : field.type == Type::string  ? std::holds_alternative<std::string>(node.value)
                                                  : node.array() != nullptr;
  const auto named = std::find_if(field_types().begin(), field_types().end(), [&](const auto& pair) { return pair.second == field.type; });
  KF_CHECK(fits, Code::script, "{}: default ({}) is no {}", where, describe(L, index), named->first);
  if (integer || std::holds_alternative<double>(node.value)) {
    const double value = lua_tonumber(L, index);
    KF_CHECK(!field.min || value >= *field.min, Code::script, "{}: default ({}) is below min ({})", where, value, *field.min);
    KF_CHECK(!field.max || value <= *field.max, Code::script, "{}: default ({}) is above max ({})", where, value, *field.max);
  }
  if (const auto* text = std::get_if<std::string>(&node.value); text && !field.choices.empty()) {
    const bool listed = std::find(field.choices.begin(), field.choices.end(), *text) != field.choices.end();
    KF_CHECK(listed, Code::script, "{}: default '{}' is none of its choices: {}", where, *text, join(field.choices, ", "));
  }
  return node;
}

std::optional<double> read_bound(lua_State* L, int row, const char* key, const config::PartField& field, const std::string& where) {
  using Type = config::PartField::Type;
  lua_getfield(L, row, key);
  std::optional<double> out;
  if (!lua_isnil(L, -1)) {
    KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "{}: {} must be a number, got {}", where, key, describe(L, -1));
    KF_CHECK(field.type == Type::integer || field.type == Type::real, Code::script, "{}: {} is for int and float only", where, key);
    out = lua_tonumber(L, -1);
  }
  lua_pop(L, 1);
  return out;
}

std::vector<std::string> read_choices(lua_State* L, int row, const config::PartField& field, const std::string& where) {
  lua_getfield(L, row, "choices");
  std::vector<std::string> out;
  if (!lua_isnil(L, -1)) {
    KF_CHECK(field.type == config::PartField::Type::string, Code::script, "{}: choices are for string only", where);
    const config::Node node = read_value(L, -1, {where + ": choices", {}});
    KF_CHECK(node.array(), Code::script, "{}: choices must be a list of strings", where);
    for (const config::Node& item : *node.array()) {
      const auto* text = std::get_if<std::string>(&item.value);
      KF_CHECK(text, Code::script, "{}: choices must be strings", where);
      out.push_back(*text);
    }
  }
  lua_pop(L, 1);
  return out;
}

/// One row: { name, type, default = ..., min = ..., max = ..., choices = ..., doc = ... }, on top of the stack.
config::PartField read_field(lua_State* L, std::string where) {
  const int row = lua_gettop(L);
  KF_CHECK(lua_istable(L, row), Code::script, "{}: expected a row { name, type, default = ... }, got {}", where, describe(L, row));
  config::PartField field;
  lua_rawgeti(L, row, 1);
  field.name = check_text(L, -1, where, "a name first");
  lua_rawgeti(L, row, 2);
  where += " '" + field.name + "'";
  KF_CHECK(is_part_name(field.name), Code::script, "{}: the name must be letters, digits, '_' and '-'", where);
  field.type = field_type(check_text(L, -1, where, "a type second"), where);
  lua_pop(L, 2);
  check_keys(L, row, {"default", "min", "max", "choices", "doc"}, 2, where);
  field.doc = text_field(L, row, "doc", where);
  field.min = read_bound(L, row, "min", field, where);
  field.max = read_bound(L, row, "max", field, where);
  KF_CHECK(!field.min || !field.max || *field.min <= *field.max, Code::script, "{}: min ({}) is above max ({})", where, *field.min,
           *field.max);
  field.choices = read_choices(L, row, field, where);
  lua_getfield(L, row, "default");
  if (!lua_isnil(L, -1)) {
    field.fallback = read_default(L, lua_gettop(L), field, where);
  }
  lua_pop(L, 1);
  return field;
}

}  // namespace

void push_register(lua_State* L) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushcfunction(L, &guarded<register_index>);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, &guarded<register_newindex>);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -2);
}

void read_part_options(lua_State* L, int index, const std::string& where, config::PartInfo& info) {
  if (lua_isnoneornil(L, index)) {
    return;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected { fields = ..., doc = ... } as third argument, got {}", where,
           describe(L, index));
  check_keys(L, index, {"fields", "doc"}, 0, where);
  info.doc = text_field(L, index, "doc", where);
  lua_getfield(L, index, "fields");
  if (!lua_isnil(L, -1)) {
    const int fields = lua_gettop(L);
    KF_CHECK(lua_istable(L, fields), Code::script, "{}: fields must be a list of rows, got {}", where, describe(L, fields));
    const int count = static_cast<int>(lua_objlen(L, fields));
    check_keys(L, fields, {}, count, where + ": fields (a list of rows)");
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(L, fields, i);
      config::PartField field = read_field(L, format("{}: field {}", where, i));
      const bool repeated =
          std::any_of(info.fields.begin(), info.fields.end(), [&](const auto& other) { return other.name == field.name; });
      KF_CHECK(!repeated, Code::script, "{}: field '{}' is declared twice", where, field.name);
      info.fields.push_back(std::move(field));
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
}

void check_may_register(const Session& session, const std::string& where) {
  KF_CHECK(session.may_register, Code::script,
           "{}: parts are registered while the script itself runs, before a run starts; here a run is on, in a callback", where);
}

}  // namespace kf::lua
