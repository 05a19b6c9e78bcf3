#include "bindings/nn/settings_keys.h"

#include <ATen/ATen.h>

#include "bindings/nn/build_scope.h"
#include "bindings/tensor/tensor.h"
#include "bindings/value/values.h"
#include "bindings/vm/stack.h"
#include "config/load/convert.h"
#include "config/rules/rules.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "model/layer/rope.h"

namespace kf::lua {
namespace {

/// config.model.<row> = the value on top, in the row's type and bounds.
void set_row(lua_State* L, const Session& session, config::Config& out, const config::Row& row, const std::string& where) {
  const config::Catalog catalog = session.registries.catalog();
  config::Report report;
  config::Converter converter(catalog, report);
  const auto node = converter.convert(read_value(L, lua_gettop(L), {where + ": " + row.name, {}}), row, row.name);
  if (!node || !report.problems.empty()) {
    fail(Code::script, "{}: {}", where, report.problems.empty() ? "'" + row.name + "' does not fit" : report.problems.front().message);
  }
  row.set(out, *node);
}

/// The [model] keys of the table at `index` (`layer` left out), into `out`. A view of the settings gives all of them.
void apply_keys(lua_State* L, int index, const Session& session, config::Config& out, const std::string& where) {
  if (lua_isnoneornil(L, index)) {
    return;
  }
  if (lua_istable(L, index)) {
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
      const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
      if (key == "layer") {
        continue;
      }
      const config::Row* row = config::find_row("model." + key);
      std::vector<std::string> names = {"layer"};
      for (const config::Row& known : config::rows()) {
        if (known.section == "model") {
          names.push_back(known.name);
        }
      }
      KF_CHECK(row != nullptr, Code::script, "{}: [model] has no key '{}'{}", where, key, suggestion(key, names));
      set_row(L, session, out, *row, where);
    }
    return;
  }
  KF_CHECK(lua_isuserdata(L, index) && tensor_at(L, index) == nullptr, Code::script,
           "{}: expected a.config.model or a table of [model] keys, got {}", where, describe_any(L, index));
  for (const config::Row& row : config::rows()) {
    if (row.section == "model") {
      lua_getfield(L, index, row.name.c_str());
      if (!lua_isnil(L, -1)) {
        set_row(L, session, out, row, where);
      }
      lua_pop(L, 1);
    }
  }
}

/// Whether the view at `index` is of the very settings that this factory builds for.
bool is_own_model(lua_State* L, int index) { return BuildScope::current() != nullptr && lua_isuserdata(L, index); }

}  // namespace

/// The settings that a factory builds for, else the defaults.
config::Config base_config() { return BuildScope::current() != nullptr ? BuildScope::current()->config() : config::Config(); }

/// The place of a layer that nobody placed: shares its rotary tables with the others of its model.
Place place_of(std::int64_t layer, std::int64_t dim, std::int64_t hidden) {
  Place place = BuildScope::current() != nullptr ? BuildScope::current()->place() : Place{};
  place.layer = layer >= 0 ? layer : std::max<std::int64_t>(place.layer, 0);
  place.dim = dim;
  place.hidden = hidden;
  if (!place.ropes) {
    place.ropes = std::make_shared<RopeTables>();
  }
  return place;
}

Settings read_settings(lua_State* L, const Session& session, const char* where) {
  Settings out{base_config()};
  if (!is_own_model(L, 1)) {
    apply_keys(L, 1, session, out.config, where);
  }
  apply_keys(L, 2, session, out.config, where);
  if (lua_istable(L, 2)) {
    lua_getfield(L, 2, "layer");
    const auto given = exact_integer(L, -1);
    KF_CHECK(lua_isnil(L, -1) || (given && *given >= 0), Code::script, "{}: layer must be a whole number from 0 on, got {}", where,
             describe(L, -1));
    out.layer = given.value_or(-1);
    lua_pop(L, 1);
  }
  return out;
}

void check_experts(const Settings& settings, const char* where) {
  KF_CHECK(settings.config.model.num_experts > 0, Code::script, "{}: num_experts must be above 0, give it beside layer", where);
  const config::Table merged;
  const std::set<std::string> broken;
  config::Report report;
  const config::Job job{settings.config, merged, broken, std::nullopt, false};
  config::Findings findings(job, report);
  for (const config::Rule rule : config::model_rules()) {
    rule(job, findings);
  }
  for (const config::Problem& problem : report.problems) {  // those of other keys concern layers that this one has not
    const bool about_experts =
        problem.message.find("moe_") != std::string::npos || problem.message.find("num_experts") != std::string::npos;
    KF_CHECK(!about_experts, Code::script, "{}: {}", where, problem.message);
  }
}

}  // namespace kf::lua
