#include <algorithm>
#include <iostream>
#include <optional>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/script/script_session.h"
#include "checkpoint/files/folder.h"
#include "config/load/cli.h"
#include "config/load/load.h"
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

/// Where the run can begin so that it comes to the incident: the checkpoint that was the newest one then, or, where that has been removed,
/// the newest of those before the incident that are still there; empty: from its first step.
fs::path beginning(const Incident& incident, const fs::path& run) {
  if (!incident.checkpoint.empty() && path_exists(incident.checkpoint)) {
    return incident.checkpoint;
  }
  std::int64_t best = -1;
  std::error_code none;
  for (fs::directory_iterator entry(run / "checkpoints", none), end; !none && entry != end; entry.increment(none)) {
    const std::optional<std::int64_t> step = step_of(entry->path().filename().string());
    best = step && *step < incident.step ? std::max(best, *step) : best;
  }
  return best < 0 ? fs::path() : run / "checkpoints" / format("step_{}", best);
}

/// The words of the replay come first, so that the user's win.
std::vector<std::string> overrides_of(const fs::path& folder, const Incident& incident, const Arguments& more) {
  const fs::path run = folder.parent_path().parent_path();
  const fs::path from = beginning(incident, run);
  std::vector<std::string> out{"--run.dir=" + (folder / "replay").string(), "--run.name=replay", "--run.fresh=true", "--run.id="};
  if (from.empty()) {
    log::info("the run is repeated from its first step to step {}", incident.step);
  } else {
    log::info("the run is repeated from {} to step {}", from, incident.step);
    out.push_back("--checkpoint.load_path=" + from.string());
  }
  out.insert(out.end(), more.begin(), more.end());
  return out;
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
  const RecordedScript script = recorded_script(incident_folder.parent_path().parent_path());
  ScriptSession session(script.path, script.arguments, script.copies);
  config::Request request;
  request.job = incident_folder / "job.toml";
  request.overrides = overrides_of(incident_folder, incident, config::join_values(Arguments(args.begin() + 1, args.end())));
  const config::Loaded loaded = config::load_or_fail(request, session.registries().catalog());
  Probe probe(incident.step);
  RunRequest run{loaded, session.begin(loaded.config), request.job, args.size() - 1};
  run.probe = &probe;
  try {
    run_job(run, session.registries());
  } catch (const Error&) {
    if (!probe.ended()) {
      throw;
    }  // the step ends the run, as it did before
  }
  KF_CHECK(probe.ended(), Code::other, "the run ended before step {}, so there is nothing to see", incident.step);
  std::cout << "\nstep " << incident.step << ": " << incident.why << "\n\n" << probe.report();
  compare_weights(incident_folder, probe);
  return probe.found() ? 0 : static_cast<int>(Code::other);
}

}  // namespace kf
