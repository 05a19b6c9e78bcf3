#pragma once
// A Lua script with its state: what the application knows of Lua.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/session/script_host.h"
#include "config/schema/config.h"
#include "config/tree/node.h"
#include "core/fs.h"
#include "metrics/run_result.h"
#include "registry/part_states.h"
#include "registry/registries.h"

namespace kf {

namespace sweep {
struct Definition;
}
namespace lua {
class Interrupt;
class LuaStack;
class RunDraws;
class Runtime;
struct Session;
}  // namespace lua

/// A file of Lua that a script is made of.
struct CodeFile {
  std::string name;  // relative to the script's folder where it lies below it or beside, else as it was found
  fs::path path;
  std::string asked;      // how: "MODULE" of require, "file PATH" of dofile and loadfile; "" for the script itself
  std::string text;       // as it is now
  std::string functions;  // digest of what its functions do; comments and blanks do not count
  std::string rest;       // digest of what stands outside of functions
};

/// One script: its lua_State and what it registered. The parts it registers leave `registries` when it is destroyed; objects that their
/// factories made (schedules, hooks) may live longer.
class Script {
 public:
  /// `arguments` become kf.args.
  Script(Registries& registries, ScriptHost host, std::vector<std::string> arguments);
  ~Script();
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  /// Files to take instead of the modules and files that the script asks for (CodeFile::asked).
  void use_copies(const std::map<std::string, fs::path>& copies);

  /// Runs a file. A table that it returns is the recipe: a layer for config::Request::recipe, with origins in the script and with the hooks
  /// it lists registered, so that `hooks` is a list of names. Nothing when it returned nothing. Throws Error{Code::script}.
  std::optional<config::Node> run_file(const fs::path& path);

  /// While one exists, the code of the script at `path` runs: `require` looks beside it, messages name it, parts may be registered. A run
  /// that the code starts is outside of it; another one may be opened there, between two steps.
  class Phase {
   public:
    Phase(Script& script, const fs::path& path);
    ~Phase();
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

   private:
    void name(const std::string& path);

    Script& script_;
    bool outer_;         // whether there is one around it
    std::string shown_;  // what messages named before
  };

  lua::Runtime& runtime() { return *runtime_; }

  /// The script itself (first, where it is a file), the modules it required from its folder or KF_LUA_PATH, what it read by dofile and
  /// loadfile: without those that are shipped.
  std::vector<CodeFile> code() const;
  /// kf.args.
  const std::vector<std::string>& arguments() const;
  /// The sweep that the file returned, or null.
  sweep::Definition* sweep();
  /// What that sweep's objective makes of a result. Throws Code::script where it is no number.
  double objective(const RunResult& result);

  /// While one exists, kf.config shows the job of the run that is on, kf.rng draws from its seed, and the parts that are made add what they
  /// keep to `states`.
  class RunScope {
   public:
    RunScope(Script& script, config::Config config);
    /// Of a second script beside the one of the run, whose random numbers it draws.
    struct Beside {};
    RunScope(Script& script, config::Config config, Beside);
    ~RunScope();
    Script& script() const { return script_; }
    PartStates& states() const { return *states_; }
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;

   private:
    Script& script_;
    config::Config config_;
    std::unique_ptr<lua::Interrupt> interrupt_;
    std::unique_ptr<lua::LuaStack> stack_;
    std::unique_ptr<PartStates> states_;
    std::unique_ptr<lua::RunDraws> draws_;
  };

 private:
  std::shared_ptr<lua::Runtime> runtime_;
  std::unique_ptr<lua::Session> session_;
};

}  // namespace kf
