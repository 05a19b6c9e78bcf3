#pragma once
// Lua values to the neutral value tree and back: recipes, options, states of parts.

#include <lua.hpp>

#include <functional>
#include <string>
#include <vector>

#include "config/tree/node.h"

namespace kf::lua {

/// Where the key and the value of a path stand.
struct Origins {
  config::Origin key;
  config::Origin value;
};

/// How a table is read.
struct ReadOptions {
  std::string what;                                                     // in messages: "the job", "the state of hook 'judge'"
  std::function<Origins(const std::vector<std::string>& path)> locate;  // may be empty
};

/// The value at `index`. Throws Code::script naming the path of what cannot be kept: functions, userdata, mixed or sparse tables, cycles.
/// Integral numbers up to 2^53 become integers. An empty table becomes an empty Table; the declared type decides whether it is a list.
config::Node read_value(lua_State* L, int index, const ReadOptions& options);

/// Pushes a copy as plain Lua values; `what` starts the message about an integer past 2^53.
void push_value(lua_State* L, const config::Node& node, const std::string& what);
void push_value(lua_State* L, const config::Table& table, const std::string& what);

}  // namespace kf::lua
