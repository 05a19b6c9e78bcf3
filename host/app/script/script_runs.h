#pragma once
// A script that may train: what kf.run does, for every command that runs Lua.

#include <optional>
#include <string>

#include "app/line/arguments.h"
#include "bindings/script/script.h"
#include "config/load/load.h"
#include "metrics/run_result.h"
#include "registry/registries.h"
#include "run/launch.h"

namespace kf {

/// The script may return a job, or call kf.run itself as often as it likes.
class ScriptRuns {
 public:
  /// `launch`: this process among those that train together.
  ScriptRuns(TrainArguments arguments, Registries& registries, Launch launch = {});

  /// Runs the file and the job that it returns, if any.
  void run_file();
  Script& script() { return script_; }

 private:
  RunResult run(config::Node recipe);
  void name_if_needed(config::Node& recipe);

  TrainArguments arguments_;
  Registries& registries_;
  Launch launch_;
  int unnamed_ = 0;
  std::int64_t calls_ = 0;
  bool ran_ = false;
  bool reread_ = false;  // the first run was asked for
  Script script_;
};

/// What kf.load gives a script.
ScriptModel load_script_model(const fs::path& path, const std::string& weights, const Registries& registries);

/// The request for a job without its source: overrides and the launched world.
config::Request request_of(const TrainArguments& arguments, const Launch& launch);

}  // namespace kf
