#pragma once
// state() and load(state): what a part written in Lua keeps in checkpoints. One mechanism for every kind.

#include <lua.hpp>

#include <functional>
#include <string>
#include <vector>

#include "bindings/vm/runtime.h"
#include "config/schema/part.h"
#include "config/tree/node.h"
#include "registry/part_states.h"
#include "registry/registries.h"

namespace kf::lua {

/// The two functions of a part, or none.
struct StateFunctions {
  Ref state;
  Ref load;
  Ref self;  // given first, where it is set: modules have methods

  explicit operator bool() const { return static_cast<bool>(state); }
  /// What state() gives; null for nil. Throws Code::script naming what cannot be kept.
  config::Node save(const std::string& where) const;
  void restore(const config::Node& saved, const std::string& where) const;
};

/// Those of the table at `index`. Throws Code::script where one of the two is missing or no function.
StateFunctions read_state_functions(lua_State* L, int index, const std::string& where);

/// Adds a part to those of the run that is on; null where there is none, or nothing to keep. `where` is from part_text; `below` tells
/// modules inside of the part apart.
PartStates::Handle keep_state(StateFunctions functions, const std::string& where, const std::string& below = {});
/// The same for the table at `index`.
PartStates::Handle keep_state_of(lua_State* L, int index, const std::string& where);

/// Every module in the module at `index` that keeps something; appends to `out`.
void keep_module_states(lua_State* L, int index, const std::string& where, std::vector<PartStates::Handle>& out);

/// A part that is one function.
struct FunctionPart {
  Ref function;
  PartStates::Handle kept;
};

/// As `build`, for a factory that returns a function, a callable table, or { function, state = ..., load = ... }.
FunctionPart build_function(const Ref& factory, const std::string& where, const PartArgs& args, const std::function<void(lua_State*)>& fill,
                            const std::string& wanted);

}  // namespace kf::lua
