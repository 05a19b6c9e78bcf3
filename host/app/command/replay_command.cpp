#include <algorithm>
#include <iostream>
#include <optional>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/script/script_session.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/retention.h"
#include "config/load/cli.h"
#include "config/load/load.h"
#include "config/load/toml.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "core/wrap.h"
#include "run/run.h"
#include "run/run_record.h"
#include "train/loop/incidents.h"
#include "train/loop/probe.h"

namespace kf {
namespace {

constexpr std::uint64_t kMostJob = std::uint64_t{64} << 20;

/// Where the run keeps its checkpoints, by its job; wherever its folder lies now.
fs::path checkpoints_of(const fs::path& run, const fs::path& job) {
  config::Report report;
  const std::optional<config::Table> table =
      config::parse_toml(read_regular_file(job, kMostJob), job.string(), config::Origin::Kind::toml, report);
  const config::Node* const section = table ? table->find("checkpoint") : nullptr;
  const config::Node* const dir = section != nullptr && section->table() != nullptr ? section->table()->find("dir") : nullptr;
  const auto* const text = dir != nullptr ? std::get_if<std::string>(&dir->value) : nullptr;
  return text == nullptr || *text == config::CheckpointConfig().dir ? run / "checkpoints" : fs::path(*text);
}

/// Where the run can begin so that it comes to the incident: the newest of its own checkpoints before it that are still there, else the one
/// that it had begun with; empty: from its first step.
fs::path beginning(const Incident& incident, const fs::path& own) {
  std::int64_t best = -1;
  std::error_code none;
  for (fs::directory_iterator entry(own, none), end; !none && entry != end; entry.increment(none)) {
    const std::optional<std::int64_t> step = step_of(entry->path().filename().string());
    best = step && *step < incident.step ? std::max(best, *step) : best;
  }
  if (best >= 0) {
    return own / step_folder(best);
  }
  const bool others = !incident.checkpoint.empty() && path_exists(incident.checkpoint);
  return others ? fs::path(incident.checkpoint) : fs::path();
}

/// The words of the replay come first, so that the user's win.
std::vector<std::string> overrides_of(const fs::path& folder, const Incident& incident, const Arguments& more) {
  const fs::path run = folder.parent_path().parent_path();
  const fs::path from = beginning(incident, checkpoints_of(run, folder / "job.toml"));
  const fs::path own = folder / "replay";
  std::vector<std::string> out{"--run.dir=" + own.string(),
                               "--run.name=replay",
                               "--run.fresh=true",
                               "--run.id=",
                               "--checkpoint.dir=" + (own / config::CheckpointConfig().dir).string(),
                               "--checkpoint.mirror="};
  if (from.empty()) {
    log::info("the run is repeated from its first step to step {}", incident.step);
  } else {
    log::info("the run is repeated from {} to step {}", from, incident.step);
    out.push_back("--checkpoint.load_path=" + from.string());
  }
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

config::Loaded load_job(const config::Request& request, const config::Catalog& catalog) {
  try {
    return config::load_or_fail(request, catalog);
  } catch (Error& error) {
    throw error.context(
        "a replay runs the script up to its first kf.run; parts that are written inside of a table for kf.run are not there, those that "
        "are "
        "registered (kf.register.hook, ...) are");
  }
}

/// Says whether the weights are those of the run.
void compare_weights(const fs::path& folder, const Probe& probe) {
  const std::map<std::string, std::string> kept = read_weight_digests(folder);
  std::vector<std::string> changed;
  for (const auto& [name, crc] : kept) {
    const auto found = probe.weights().find(name);
    if (found == probe.weights().end() || found->second != crc) {
      changed.push_back(name);
    }
  }
  if (changed.empty()) {
    std::cout << "the weights before the step equal those of the run, bit for bit\n";
    return;
  }
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> shown(changed.begin(), changed.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, changed.size())));
  std::cout << "the weights before the step are not those of the run: " << changed.size() << " of " << kept.size() << " differ ("
            << join(shown, ", ") << (changed.size() > kShown ? ", ..." : "")
            << "); another machine, other threads or changed settings give other numbers\n";
}

}  // namespace

int replay_command(const Arguments& args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h") {
    std::cout << folded(usage::kReplay);
    return args.empty() ? static_cast<int>(Code::config) : 0;
  }
  const fs::path folder = fs::absolute(args[0]).lexically_normal();
  const fs::path incident_folder = folder.has_filename() ? folder : folder.parent_path();
  const Incident incident = read_incident(incident_folder);
  const RecordedScript script = recorded_script(incident_folder / kIncidentCode);
  ScriptSession session(script.path, script.arguments, script.copies);
  config::Request request;
  request.job = incident_folder / "job.toml";
  request.overrides = overrides_of(incident_folder, incident, config::join_values(Arguments(args.begin() + 1, args.end())));
  const config::Loaded loaded = load_job(request, session.registries().catalog());
  Probe probe(incident.step);
  RunRequest run{loaded, session.begin(loaded.config), request.job, args.size() - 1};
  run.probe = &probe;
  run.only_until = incident.step;
  try {
    run_job(run, session.registries());
  } catch (const Error& e) {
    if (!probe.ended()) {
      throw;
    }
    log::info("the step ends the run: {}", e.what());
  }
  KF_CHECK(probe.ended(), Code::other, "the run ended before step {}, so there is nothing to see", incident.step);
  std::cout << "\nstep " << incident.step << ": " << incident.why << "\n\n" << probe.report();
  compare_weights(incident_folder, probe);
  return probe.found() ? 0 : static_cast<int>(Code::other);
}

}  // namespace kf
