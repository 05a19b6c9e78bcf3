#pragma once
// What the bound functions of one script share.

#include <lua.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/session/script_host.h"
#include "bindings/session/source_map.h"
#include "bindings/vm/runtime.h"

namespace kf {

struct Registries;
class PartStates;
namespace config {
struct Config;
}

namespace lua {

struct ContextSlot;
struct LuaSweep;
class ModuleHooks;

/// The `ctx` of a runtime: its userdata and the slot inside.
struct HookContextHandle {
  Ref userdata;
  ContextSlot* slot = nullptr;
};

/// Owned by Script; bound functions reach it through their lua_State.
struct Session {
  Session(Registries& all, ScriptHost program, std::vector<std::string> strings)
      : registries(all), host(std::move(program)), arguments(std::move(strings)) {}

  Registries& registries;
  ScriptHost host;
  std::vector<std::string> arguments;
  std::string script;                   // as messages show it
  bool in_phase = false;                // inside a Script::Phase: parts may be registered
  bool running = false;                 // inside kf.run
  bool ran = false;                     // kf.run was called
  bool may_return = false;              // a script whose job is wanted, not a prompt
  HookContextHandle context;            // the one `ctx`
  const config::Config* job = nullptr;  // of the run that is on
  Ref config;                           // its view behind kf.config, made when first asked for
  PartStates* states = nullptr;         // of the parts that are made now, while a run is on

  std::vector<std::shared_ptr<LuaSweep>> sweeps;  // what kf.sweep made, by the number in its userdata
  LuaSweep* sweep = nullptr;                      // the one that the script returned

  std::vector<std::shared_ptr<ModuleHooks>> module_hooks;  // of m:register_forward_hook; those of runs belong to their hook

  std::map<std::string, SourceMap> sources;  // by file, filled when first asked for

  /// Whether a run is on, started by kf.run or by the job that the script returned.
  bool run_is_on() const { return running || job != nullptr; }
  /// The scan of a script file; null when it cannot be read.
  const SourceMap* source_of(const std::string& file);

  /// Of the script's text and that of all modules that it has loaded; "" where there is no file, as at a prompt.
  std::string script_digest(const Runtime& runtime) const;

  /// Throws Code::script when the script has ended.
  static Session& of(lua_State* L);
  static void attach(lua_State* L, Session* session);
};

}  // namespace lua
}  // namespace kf
