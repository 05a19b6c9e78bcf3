#pragma once
// A Lua function that a part calls: what every adapter does around it.

#include <lua.hpp>

#include <optional>
#include <string>
#include <utility>

#include "bindings/session/factory.h"
#include "bindings/vm/runtime.h"
#include "core/running.h"
#include "core/trace.h"

namespace kf::lua {

/// Calls `function` with what `push` puts on the stack (it gives their number), then `read` with the result on top, everything protected.
/// Errors get the line `in <where><what>`. Read returns what the call gives.
template <class Push, class Read>
auto call_part(const Ref& function, const std::string& where, const std::string& what, Push&& push, Read&& read) {
  Runtime& runtime = function.runtime();
  using Result = decltype(read(std::declval<lua_State*>()));
  std::optional<Result> result;
  const Running running(where.c_str(), what.c_str());
  const TraceRange range(TraceKind::call, where.c_str(), what.c_str());
  try {
    runtime.protect([&](lua_State* L) {
      function.push(L);
      const int arguments = push(L);
      lua_call(L, arguments, 1);
      result.emplace(read(L));
    });
  } catch (const Error& error) {
    rethrow_from(error, where, "in " + where + what);
  }
  return std::move(*result);
}

/// The member `name` of the table on top, which must be a function; `optional`: or nil, which gives an empty Ref.
Ref take_method(lua_State* L, const char* name, const std::string& where, bool optional = false);

}  // namespace kf::lua
