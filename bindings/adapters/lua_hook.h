#pragma once
// A hook written in Lua: a table of `on_<event>` functions.

#include <lua.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/adapters/kept_state.h"
#include "bindings/context/hook_context.h"
#include "bindings/session/session.h"
#include "bindings/vm/runtime.h"
#include "config/schema/part.h"
#include "train/loop/hook.h"

namespace kf::lua {

inline constexpr std::size_t kEventCount = std::size(kEventNames);

/// What a hook table says.
struct HookTable {
  std::string name;                                // "" without one
  std::int64_t every = 1;                          // step events only
  std::optional<std::vector<std::int64_t>> ranks;  // nothing: all
  bool warn_on_error = false;                      // on_error = "warn"
  std::int64_t priority = 0;                       // higher ones are called first
  std::array<Ref, kEventCount> events;             // empty where the table has none
  StateFunctions state;
};

/// Reads the table at `index`. Throws Code::script for unknown keys and events (with the nearest), wrong types, or no event at all;
/// `where` starts the messages. Call it protected.
HookTable read_hook_table(lua_State* L, int index, const std::string& where);

class LuaHook final : public Hook {
 public:
  /// `where` is in messages: "recipe.lua:3: hook 'judge'".
  LuaHook(std::string name, std::string where, std::shared_ptr<const HookTable> table, Session& session);

  ~LuaHook() override;
  LuaHook(const LuaHook&) = delete;
  LuaHook& operator=(const LuaHook&) = delete;

  std::string name() const override { return name_; }
  /// `every` = n: step events of the updates n, 2n, ... (`step` counts completed updates, so the events before the update see one less).
  bool wants(Event event, std::int64_t step) const override;
  void call(Event event, HookContext& context) override;
  std::int64_t priority() const override { return table_->priority; }
  config::Node state() override;
  void load(const config::Node& state) override;

 private:
  void run(Event event, HookContext& context);

  std::string name_;
  std::string where_;
  std::shared_ptr<const HookTable> table_;
  bool here_;  // this rank is among `ranks`
  Ref context_;
  ContextSlot& slot_;
  std::vector<std::shared_ptr<ModuleHooks>> module_hooks_;  // that its functions registered
};

/// Registers the hook at stack index 2: a hook table, or a factory{ config, options } -> hook table.
void add_hook(lua_State* L, Session& session, config::PartInfo info);

/// Registers the hook table at `index`.
void add_hook_table(lua_State* L, int index, Session& session, config::PartInfo info);

}  // namespace kf::lua
