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

config::Type field_type(const std::string& word, const std::string& where) {
  const config::TypeRow* const type = config::type_of_word(word);
  KF_CHECK(type != nullptr, Code::script, "{}: no type '{}'{}", where, word, suggestion(word, config::type_words()));
  return type->type;
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

void check_default(double value, const config::Check& check, const std::string& where) {
  if (check.min) {
    KF_CHECK(check.above_min || value >= *check.min, Code::script, "{}: default ({}) is below min ({})", where, value, *check.min);
    KF_CHECK(!check.above_min || value > *check.min, Code::script, "{}: default ({}) is not above {}", where, value, *check.min);
  }
  if (check.max) {
    KF_CHECK(check.below_max || value <= *check.max, Code::script, "{}: default ({}) is above max ({})", where, value, *check.max);
    KF_CHECK(!check.below_max || value < *check.max, Code::script, "{}: default ({}) is not below {}", where, value, *check.max);
  }
}

/// A value of the row's type, with the bounds and choices that the row has.
config::Node read_default(lua_State* L, int index, const config::Row& row, const std::string& where) {
  const config::TypeRow& type = config::type_row(row.type);
  std::optional<config::Node> node = type.literal(read_value(L, index, {where + ": default", {}}));
  KF_CHECK(node, Code::script, "{}: default ({}) is no {}", where, describe(L, index), type.word);
  if (const auto* whole = std::get_if<std::int64_t>(&node->value)) {
    check_default(static_cast<double>(*whole), row.check, where);
  } else if (const auto* real = std::get_if<double>(&node->value)) {
    check_default(*real, row.check, where);
  } else if (const auto* text = std::get_if<std::string>(&node->value); text && !row.check.choices.empty()) {
    const std::vector<std::string>& choices = row.check.choices;
    const bool listed = std::find(choices.begin(), choices.end(), *text) != choices.end();
    KF_CHECK(listed, Code::script, "{}: default '{}' is none of its choices: {}", where, *text, join(choices, ", "));
  }
  return std::move(*node);
}

std::optional<double> read_bound(lua_State* L, int index, const char* key, const config::Row& row, const std::string& where) {
  lua_getfield(L, index, key);
  std::optional<double> out;
  if (!lua_isnil(L, -1)) {
    KF_CHECK(lua_type(L, -1) == LUA_TNUMBER, Code::script, "{}: {} must be a number, got {}", where, key, describe(L, -1));
    KF_CHECK(config::type_row(row.type).checked == config::Checked::bounds, Code::script, "{}: {} is for int and float only", where, key);
    out = lua_tonumber(L, -1);
  }
  lua_pop(L, 1);
  return out;
}

/// min or above, max or below.
void read_bounds(lua_State* L, int index, config::Row& row, const std::string& where) {
  const std::optional<double> min = read_bound(L, index, "min", row, where);
  const std::optional<double> above = read_bound(L, index, "above", row, where);
  const std::optional<double> max = read_bound(L, index, "max", row, where);
  const std::optional<double> below = read_bound(L, index, "below", row, where);
  KF_CHECK(!min || !above, Code::script, "{}: min and above are two words for one bound; give one", where);
  KF_CHECK(!max || !below, Code::script, "{}: max and below are two words for one bound; give one", where);
  KF_CHECK(!min || !max || *min <= *max, Code::script, "{}: min ({}) is above max ({})", where, *min, *max);
  config::Check& check = row.check;
  check.above_min = above.has_value();
  check.below_max = below.has_value();
  check.min = above ? above : min;
  check.max = below ? below : max;
  const bool open = check.min && check.max && (check.above_min || check.below_max);
  KF_CHECK(!open || *check.min < *check.max, Code::script, "{}: {} ({}) and {} ({}) leave no value", where, above ? "above" : "min",
           *check.min, below ? "below" : "max", *check.max);
}

std::vector<std::string> read_choices(lua_State* L, int index, const config::Row& row, const std::string& where) {
  lua_getfield(L, index, "choices");
  std::vector<std::string> out;
  if (!lua_isnil(L, -1)) {
    KF_CHECK(config::type_row(row.type).checked == config::Checked::choices, Code::script, "{}: choices are for string only", where);
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

/// One row: { name, type, default = ..., min = ..., above = ..., choices = ..., doc = ... }, on top of the stack.
config::Row read_field(lua_State* L, std::string where) {
  const int index = lua_gettop(L);
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a row { name, type, default = ... }, got {}", where, describe(L, index));
  config::Row row;
  lua_rawgeti(L, index, 1);
  row.name = check_text(L, -1, where, "a name first");
  lua_rawgeti(L, index, 2);
  where += " '" + row.name + "'";
  KF_CHECK(is_part_name(row.name), Code::script, "{}: the name must be letters, digits, '_' and '-'", where);
  row.type = field_type(check_text(L, -1, where, "a type second"), where);
  lua_pop(L, 2);
  check_keys(L, index, {"default", "min", "max", "above", "below", "choices", "doc"}, 2, where);
  row.doc = text_field(L, index, "doc", where);
  read_bounds(L, index, row, where);
  row.check.choices = read_choices(L, index, row, where);
  lua_getfield(L, index, "default");
  row.required = lua_isnil(L, -1);
  if (!row.required) {
    row.fallback = read_default(L, lua_gettop(L), row, where);
  }
  lua_pop(L, 1);
  return row;
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
      config::Row field = read_field(L, format("{}: field {}", where, i));
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
  KF_CHECK(session.in_phase, Code::script,
           "{}: parts are registered while the script itself runs, before a run starts; here a run is on, in a callback", where);
}

}  // namespace kf::lua
