#pragma once
// The parts that a job may name, ready to be made without training: the native ones, and those of a script where one is given.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/script/script.h"
#include "config/schema/config.h"
#include "core/fs.h"
#include "registry/registries.h"
#include "run/launch.h"

namespace kf {

class ScriptSession {
 public:
  /// Runs the script, with `arguments` as kf.args, up to its first kf.run; an empty path is an empty script. `copies` are as in
  /// Script::use_copies; `launch` is what kf.dist tells. Throws what the script throws.
  explicit ScriptSession(const fs::path& script, std::vector<std::string> arguments = {},
                         const std::map<std::string, fs::path>& copies = {}, const Launch& launch = {});

  /// The job that the script returned, or that of its first kf.run.
  const std::optional<config::Node>& job() const { return job_; }
  /// The sweep that the script returned; null where it returned none.
  sweep::Definition* sweep() { return script_.sweep(); }
  const Registries& registries() const { return registries_; }
  bool has_script() const { return has_script_; }
  /// From here on kf.config shows this job, and parts may be made.
  const Script::RunScope& begin(const config::Config& config);

 private:
  RunResult take_job(config::Node job);

  Registries registries_;
  Script script_;
  bool has_script_;
  std::optional<config::Node> job_;
  std::unique_ptr<Script::RunScope> scope_;
};

}  // namespace kf
