#include "bindings/adapters/lua_schedule.h"

#include <cmath>

#include "bindings/session/factory.h"
#include "bindings/vm/stack.h"
#include "core/running.h"
#include "core/text.h"
#include "core/trace.h"

namespace kf::lua {

double LuaSchedule::factor(std::int64_t step) const {
  Runtime& runtime = part_.function.runtime();
  lua_State* L = runtime.state();
  KF_CHECK(lua_checkstack(L, 8) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  part_.function.push(L);
  lua_pushnumber(L, static_cast<double>(step));
  const Running running(where_.c_str(), nullptr, step);
  const TraceRange range(TraceKind::call, where_.c_str());
  try {
    runtime.call(1, 1);
  } catch (const Error& error) {
    rethrow_from(error, where_, format("in {} at step {}", where_, step));
  }
  const double value = lua_tonumber(L, -1);
  KF_CHECK(lua_type(L, -1) == LUA_TNUMBER && std::isfinite(value) && value >= 0, Code::script,
           "{} must return a finite number from 0 on, the factor of optimizer.lr; got {} at step {}", where_, describe(L, -1), step);
  return value;
}

void add_scheduler(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("scheduler", info);
  const auto factory = take_factory(L, 2, "scheduler");
  session.registries.scheduler.add(std::move(info),
                                   [factory, where](const PartArgs& args, const ScheduleSpan& span) -> std::unique_ptr<Schedule> {
                                     FunctionPart part = build_function(
                                         *factory, where, args,
                                         [&](lua_State* state) {
                                           push_integer(state, span.max_steps, "max_steps");
                                           lua_setfield(state, -2, "max_steps");
                                         },
                                         "a function(step) that gives the factor");
                                     return std::make_unique<LuaSchedule>(where, std::move(part));
                                   });
}

}  // namespace kf::lua
