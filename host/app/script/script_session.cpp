#include "app/script/script_session.h"

#include <string>
#include <utility>
#include <vector>

#include "builtins/builtins.h"
#include "core/error.h"

namespace kf {

ScriptSession::ScriptSession(const fs::path& script, std::vector<std::string> arguments, const std::map<std::string, fs::path>& copies,
                             const Launch& launch)
    : registries_(std::make_unique<Registries>(native_registries())) {
  if (script.empty()) {
    return;
  }
  const auto take_job = [this](config::Node job) -> RunResult {
    job_ = job_ ? job_ : std::move(job);
    fail(Code::script, "kf.run: nothing is trained here");
  };
  script_ = std::make_unique<Script>(*registries_, ScriptHost{take_job, {}, launch.rank(), launch.world()}, std::move(arguments));
  script_->use_copies(copies);
  try {
    if (std::optional<config::Node> returned = script_->run_file(script)) {
      job_ = std::move(returned);
    }
  } catch (const Error&) {
    if (!job_) {
      throw;
    }
  }
}

void ScriptSession::begin(const config::Config& config) {
  if (script_) {
    scope_ = std::make_unique<Script::RunScope>(*script_, config);
  }
}

}  // namespace kf
