#pragma once
// The parts that a job may name, ready to be made without training: the native ones, and those of a script where one is given.

#include <memory>
#include <optional>
#include <string>

#include "bindings/script.h"
#include "config/config.h"
#include "core/fs.h"
#include "registry/registries.h"

namespace kf {

class ScriptSession {
 public:
  /// Runs the script up to its first kf.run; an empty path is none. Throws what the script throws.
  explicit ScriptSession(const fs::path& script);

  /// The job that the script returned, or that of its first kf.run.
  const std::optional<config::Node>& job() const { return job_; }
  const Registries& registries() const { return *registries_; }
  bool has_script() const { return script_ != nullptr; }
  /// Of the script's text; "" without one.
  std::string digest() const { return script_ ? script_->digest() : ""; }
  /// From here on kf.config shows this job, and parts may be made.
  void begin(const config::Config& config);

 private:
  std::unique_ptr<Registries> registries_;
  std::unique_ptr<Script> script_;
  std::optional<config::Node> job_;
  std::unique_ptr<Script::RunScope> scope_;
};

}  // namespace kf
