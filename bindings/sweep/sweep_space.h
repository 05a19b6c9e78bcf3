#pragma once
// The `space` of a sweep, and the functions of a script that see its values.

#include <lua.hpp>

#include <string>
#include <vector>

#include "bindings/session/session.h"
#include "sweep/definition.h"

namespace kf::lua {

/// Where a sweep's table stands; starts the messages.
struct SweepPlace {
  Session& session;
  std::string file;
  int line = 0;

  config::Origin at(const std::vector<std::string>& path) const;
  /// "sweep.lua:7: kf.sweep: space: " and so on; `path` {"space", "optimizer.lr"}.
  std::string prefix(const std::vector<std::string>& path) const;
};

/// The table at `index` as entries, sorted by name. `definition` outlives the functions among them. Throws Code::script.
std::vector<sweep::Entry> read_space(lua_State* L, int index, const SweepPlace& place, const sweep::Definition& definition);

/// A table of values, nested or with dotted keys, as dotted key -> value.
config::Table read_values(lua_State* L, int index, const SweepPlace& place, const std::vector<std::string>& path);

/// adjust(c) as a function of the values.
std::function<bool(config::Table&)> make_adjust(lua_State* L, int index, const SweepPlace& place, const sweep::Definition& definition);

/// method(number, trials) as a function.
std::function<std::optional<config::Table>(std::int64_t, const std::vector<sweep::Trial>&)> make_suggest(lua_State* L, int index,
                                                                                                         const SweepPlace& place);

}  // namespace kf::lua
