#include "app/script/script_session.h"

#include <string>
#include <utility>
#include <vector>

#include "builtins/builtins.h"
#include "core/error.h"

namespace kf {

ScriptSession::ScriptSession(const fs::path& script, std::vector<std::string> arguments, const std::map<std::string, fs::path>& copies,
                             const Launch& launch)
    : registries_(native_registries()),
      script_(registries_, {[this](config::Node job) { return take_job(std::move(job)); }, {}, launch.rank(), launch.world()},
              std::move(arguments)),
      has_script_(!script.empty()) {
  if (!has_script_) {
    return;
  }
  script_.use_copies(copies);
  try {
    if (std::optional<config::Node> returned = script_.run_file(script)) {
      job_ = std::move(returned);
    }
  } catch (const Error&) {
    if (!job_) {
      throw;
    }
  }
}

RunResult ScriptSession::take_job(config::Node job) {
  job_ = job_ ? job_ : std::move(job);
  fail(Code::script, "kf.run: nothing is trained here");
}

const Script::RunScope& ScriptSession::begin(const config::Config& config) {
  scope_ = std::make_unique<Script::RunScope>(script_, config);
  return *scope_;
}

}  // namespace kf
