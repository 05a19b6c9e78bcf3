#pragma once
// The job as scripts see it: a.config, kf.config and a.options. Reading a field is free, assigning one is an error.

#include <lua.hpp>

#include "config/schema/config.h"

namespace kf::lua {

/// The whole job, defaults included, as a tree: sections, top keys, and each part's own table as `section.<part>`.
config::Table job_tree(const config::Config& config);

/// Pushes a read-only view of `tree`, which messages call `name` ("config", "options"). Tables of the first `levels` levels are views, with
/// an error for unknown fields; deeper ones, and lists, are plain copies.
void push_view(lua_State* L, config::Table tree, const char* name, int levels);

}  // namespace kf::lua
