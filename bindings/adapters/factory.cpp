#include "bindings/adapters/factory.h"

#include "bindings/config_view.h"
#include "bindings/stack.h"
#include "core/text.h"

namespace kf::lua {

std::string part_text(const std::string& kind, const config::PartInfo& info) { return format("{}: {} '{}'", info.origin, kind, info.name); }

void rethrow_from(const Error& error, const std::string& where, const std::string& line) {
  const bool bare = error.code() == Code::script && !has_position(error.what());
  throw Error(error.code(), bare ? format("{}: {}", where, error.what()) : error.what()).context(line);
}

std::shared_ptr<Ref> take_factory(lua_State* L, int index, const std::string& kind) {
  KF_CHECK(is_callable(L, index), Code::script, "kf.register.{}: expected a factory (a function), got {}", kind, describe(L, index));
  lua_pushvalue(L, index);
  return std::make_shared<Ref>(L);
}

Ref build(const Ref& factory, const std::string& where, const PartArgs& args, const std::function<void(lua_State*)>& fill,
          const std::string& wanted, bool (*fits)(lua_State*, int)) {
  Runtime& runtime = factory.runtime();
  lua_State* L = runtime.state();
  KF_CHECK(lua_checkstack(L, 8) != 0, Code::script, "Lua: stack overflow");
  const StackTop top(L);
  Ref arguments;
  runtime.protect([&](lua_State* state) {
    lua_createtable(state, 0, 4);
    push_view(state, job_tree(args.config), "config", 1);
    lua_setfield(state, -2, "config");
    push_view(state, args.options, "options", 0);
    lua_setfield(state, -2, "options");
    if (fill) {
      fill(state);
    }
    arguments = Ref(state);
  });
  factory.push(L);
  arguments.push(L);
  try {
    runtime.call(1, 1);
  } catch (const Error& error) {
    rethrow_from(error, where, format("in the factory of {}", where));
  }
  KF_CHECK(fits(L, -1), Code::script, "{} must return {}, got {}", where, wanted, describe(L, -1));
  return Ref(L);
}

}  // namespace kf::lua
