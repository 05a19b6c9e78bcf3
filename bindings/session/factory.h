#pragma once
// What the adapters share: from a registered factory to the value it builds.

#include <lua.hpp>

#include <functional>
#include <memory>
#include <string>

#include "bindings/vm/runtime.h"
#include "config/schema/part.h"
#include "registry/registries.h"

namespace kf::lua {

/// "recipe.lua:1: scheduler 'half'": starts the messages about a part, so that they begin with a position.
std::string part_text(const std::string& kind, const config::PartInfo& info);

/// Throws `error` again with `line` as context. A message without a position (a tail call leaves no frame) gets the part's own in front.
[[noreturn]] void rethrow_from(const Error& error, const std::string& where, const std::string& line);

/// The factory function at `index`, an argument of kf.register.<kind>.
std::shared_ptr<Ref> take_factory(lua_State* L, int index, const std::string& kind);

/// Calls the factory with `a` = { config, options } and what `fill` adds to the table on top. The result must satisfy `fits`; otherwise the
/// message says that `where` must return `wanted`.
Ref build(const Ref& factory, const std::string& where, const PartArgs& args, const std::function<void(lua_State*)>& fill,
          const std::string& wanted, bool (*fits)(lua_State*, int));

}  // namespace kf::lua
