#include "bindings/adapters/lua_phase.h"

#include <algorithm>
#include <cmath>

#include "bindings/adapters/callback.h"
#include "bindings/adapters/kept_state.h"
#include "bindings/context/hook_context.h"
#include "bindings/session/factory.h"
#include "bindings/session/place.h"
#include "bindings/value/values.h"
#include "bindings/vm/stack.h"
#include "core/text.h"
#include "train/loop/phase.h"

namespace kf::lua {
namespace {

bool is_table(lua_State* L, int index) { return lua_istable(L, index); }

/// The function `key` of the table at `index`, empty where it is none. stop_when is a function or nil.
Ref take_function(lua_State* L, int index, const char* key, const std::string& where) {
  lua_getfield(L, index, key);
  if (is_callable(L, -1)) {
    return Ref(L);
  }
  KF_CHECK(lua_isnil(L, -1) || key != std::string_view("stop_when"), Code::script, "{}: stop_when must be a function(ctx), got {}", where,
           describe(L, -1));
  lua_pop(L, 1);
  return {};
}

/// Every function of the table at `index` must be one that a phase has.
void check_functions(lua_State* L, int index, const std::string& where) {
  const std::vector<std::string> names = {"stop_when", "lr_scale", "state", "load"};
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (is_callable(L, -1)) {
      const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
      KF_CHECK(std::find(names.begin(), names.end(), key) != names.end(), Code::script, "{}: no function '{}'{}", where, key,
               suggestion(key, names));
    }
  }
}

/// The entry at `index` without its functions.
config::Table entry_of(lua_State* L, int index, const ReadOptions& options) {
  lua_newtable(L);
  const int copy = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (!is_callable(L, -1)) {
      lua_pushvalue(L, -2);
      lua_pushvalue(L, -2);
      lua_rawset(L, copy);
    }
  }
  config::Node node = read_value(L, copy, options);
  lua_pop(L, 1);
  KF_CHECK(node.table() != nullptr, Code::script, "{}: a phase is a table of name = value, not a list", options.what);
  return std::move(*node.table());
}

class LuaPhase final : public PhaseRules {
 public:
  /// `made`: by a factory, so that nobody has read its entry yet.
  LuaPhase(std::string where, const Ref& table, Session& session, bool made) : where_(std::move(where)), slot_(*session.context.slot) {
    table.runtime().protect([&](lua_State* L) {
      table.push(L);
      const int index = lua_gettop(L);
      stop_when_ = take_function(L, index, "stop_when", where_);
      lr_scale_ = take_function(L, index, "lr_scale", where_);
      kept_ = keep_state_of(L, index, where_);
      check_functions(L, index, where_);
      entry_ = made ? entry_of(L, index, {where_, {}}) : config::Table();
      session.context.userdata.push(L);
      context_ = Ref(L);
    });
  }

  config::Table entry() const override { return entry_; }
  bool has_stop_when() const override { return static_cast<bool>(stop_when_); }

  bool stop_when(HookContext& context) override {
    if (!stop_when_) {
      return false;
    }
    const LentContext lent(slot_, context, Event::phase_change);
    return call_part(
        stop_when_, where_, format(", stop_when() at step {}", context.state.step),
        [&](lua_State* L) {
          context_.push(L);
          return 1;
        },
        [&](lua_State* L) {
          KF_CHECK(lua_isboolean(L, -1) || lua_isnil(L, -1), Code::script, "{}: stop_when() must return true or false, got {}", where_,
                   describe(L, -1));
          return lua_toboolean(L, -1) != 0;
        });
  }

  std::optional<double> lr_scale(double t) override {
    if (!lr_scale_) {
      return std::nullopt;
    }
    return call_part(
        lr_scale_, where_, format(", lr_scale({})", t),
        [&](lua_State* L) {
          lua_pushnumber(L, t);
          return 1;
        },
        [&](lua_State* L) {
          const double value = lua_tonumber(L, -1);
          KF_CHECK(lua_type(L, -1) == LUA_TNUMBER && std::isfinite(value) && value >= 0, Code::script,
                   "{}: lr_scale({}) must return a finite number from 0 on, got {}", where_, t, describe(L, -1));
          return value;
        });
  }

 private:
  std::string where_;
  ContextSlot& slot_;
  Ref stop_when_;
  Ref lr_scale_;
  Ref context_;
  PartStates::Handle kept_;
  config::Table entry_;
};

}  // namespace

void add_phase(lua_State* L, Session& session, config::PartInfo info) {
  if (lua_istable(L, 2)) {
    const auto [file, line] = call_place(L, session);
    const auto place = [&, file = file, line = line](const std::vector<std::string>& path) { return places_of(session, file, line, path); };
    info.entry = entry_of(L, 2, {part_text("phase", info), place});
    add_phase_table(L, 2, session, std::move(info));
    return;
  }
  KF_CHECK(lua_isfunction(L, 2), Code::script, "kf.register.phase: expected a table or function, got {}", describe(L, 2));
  const auto factory = take_factory(L, 2, "phase");
  const std::string where = part_text("phase", info);
  session.registries.phase.add(std::move(info), [factory, where, &session](const PartArgs& args) -> std::unique_ptr<PhaseRules> {
    return std::make_unique<LuaPhase>(where, build(*factory, where, args, {}, "a table as an entry of phases", is_table), session,
                                      /*made=*/true);
  });
}

void add_phase_table(lua_State* L, int index, Session& session, config::PartInfo info) {
  const std::string where = part_text("phase", info);
  check_functions(L, index, where);  // wrong ones are refused here, where the script's line is known
  lua_pushvalue(L, index);
  const auto table = std::make_shared<Ref>(L);
  session.registries.phase.add(std::move(info), [table, where, &session](const PartArgs&) -> std::unique_ptr<PhaseRules> {
    return std::make_unique<LuaPhase>(where, *table, session, /*made=*/false);
  });
}

}  // namespace kf::lua
