#pragma once
// A learning-rate schedule written in Lua.

#include <lua.hpp>

#include <string>

#include "bindings/adapters/kept_state.h"
#include "bindings/session/session.h"
#include "config/schema/part.h"
#include "optim/schedule.h"

namespace kf::lua {

class LuaSchedule final : public Schedule {
 public:
  /// `where` starts messages: "scheduler 'half' (recipe.lua:1)".
  LuaSchedule(std::string where, FunctionPart part) : where_(std::move(where)), part_(std::move(part)) {}
  /// Throws Code::script when the function fails, or gives something else than a finite number from 0 on.
  double factor(std::int64_t step) const override;

 private:
  std::string where_;
  FunctionPart part_;
};

/// Registers the scheduler whose factory is at stack index 2: factory{ config, options, max_steps } -> function(step) -> factor.
void add_scheduler(lua_State* L, Session& session, config::PartInfo info);

}  // namespace kf::lua
