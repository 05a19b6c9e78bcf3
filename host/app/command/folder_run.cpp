#include "app/command/folder_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/command/dry_run.h"
#include "app/script/script_session.h"
#include "config/load/load.h"
#include "config/load/toml.h"
#include "core/error.h"
#include "core/hub_name.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "run/launch.h"
#include "run/run.h"
#include "run/run_record.h"

namespace kf {
namespace {

constexpr std::uint64_t kMostJob = std::uint64_t{64} << 20;

bool is_given(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(), [&](const std::string& word) { return word.starts_with("--" + key + "="); });
}

std::string data_key_of(const fs::path& job, const char* key) {
  config::Report report;
  const std::optional<config::Table> table =
      config::parse_toml(read_regular_file(job, kMostJob), job.string(), config::Origin::Kind::toml, report);
  const config::Node* const data = table ? table->find("data") : nullptr;
  const config::Node* const path = data != nullptr && data->table() != nullptr ? data->table()->find(key) : nullptr;
  const auto* const text = path != nullptr ? std::get_if<std::string>(&path->value) : nullptr;
  return text != nullptr ? *text : "";
}

/// The folder's own words come first, so that the user's win.
std::vector<std::string> overrides_of(const TrainArguments& arguments, const fs::path& dir) {
  std::vector<std::string> out{"--run.dir=" + dir.string()};
  if (const std::string name = recorded_name(dir); !name.empty()) {
    out.push_back("--run.name=" + name);
  }
  std::vector<std::string> replaced;
  for (const char* key : {"tokenizer_path", "chat_template"}) {
    const std::string given = data_key_of(dir / "job.toml", key);
    if (const fs::path copy = recorded_copy(dir, key); !given.empty() && !path_exists(given) && !copy.empty()) {
      log::info("data.{}: {} {}; the run's own copy is taken: {}", key, given,
                hub_name(given, true) ? "is a name of the hub" : "is not there any more", copy);
      out.push_back(format("--data.{}={}", key, copy));
      replaced.push_back(format("\"data.{}\"", key));
    }
  }
  if (!replaced.empty()) {
    out.push_back("--checkpoint.accept_changes=[" + join(replaced, ", ") + "]");
  }
  out.insert(out.end(), arguments.overrides.begin(), arguments.overrides.end());
  return out;
}

}  // namespace

void continue_run(const TrainArguments& arguments, const Launch& launch) {
  const fs::path dir = arguments.file;
  KF_CHECK(arguments.script.empty(), Code::config, "'{}' after --: {} goes on with the arguments that its script was started with",
           join(arguments.script, " "), dir);
  KF_CHECK(!is_given(arguments.overrides, "run.dir"), Code::config, "run.dir: {} goes on where it is; a run elsewhere starts from {}", dir,
           dir / "job.toml");
  const RecordedScript script = recorded_script(dir);
  ScriptSession session(script.path, script.arguments, script.copies, launch);
  config::Request request;
  request.job = dir / "job.toml";
  request.overrides = overrides_of(arguments, dir);
  request.world = launch.job_world();
  const config::Loaded loaded = config::load_or_fail(request, session.registries().catalog());
  RunRequest run{loaded, session.begin(loaded.config), request.job, arguments.overrides.size()};
  run.from_folder = true;
  run.reread = [&request](const config::Node&, const config::Catalog& parts) { return config::load_or_fail(request, parts); };
  run.launch = launch;
  if (arguments.dry_run) {
    dry_run(run, session.registries());
  } else {
    run_job(run, session.registries());
  }
}

}  // namespace kf
