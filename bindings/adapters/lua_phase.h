#pragma once
// Phases with functions of their own: stop_when and lr_scale.

#include <lua.hpp>

#include "bindings/session/session.h"
#include "config/schema/part.h"

namespace kf::lua {

/// Registers the phase at stack index 2: an entry as in `phases`, or a factory{ config, options } -> such an entry.
void add_phase(lua_State* L, Session& session, config::PartInfo info);

/// Registers the functions of the entry (a table) at `index`. Throws Code::script for those of the wrong kind. Its other keys are in the
/// job itself, or in info.entry.
void add_phase_table(lua_State* L, int index, Session& session, config::PartInfo info);

}  // namespace kf::lua
