#include <iostream>
#include <optional>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "app/script/inference.h"
#include "app/script/script_session.h"
#include "checkpoint/catalog.h"
#include "checkpoint/manager.h"
#include "checkpoint/state_file.h"
#include "config/load/load.h"
#include "core/error.h"
#include "core/text.h"
#include "run/run_lock.h"
#include "run/strategies.h"

namespace kf {
namespace {

constexpr double kMost = 1e9;

/// The settings of a checkpoint, whatever has become of their files.
config::Config settings_of(const fs::path& checkpoint, const Registries& registries) {
  config::Request request;
  request.job = checkpoint / kJobFile;
  request.files_must_exist = false;
  return config::load_or_fail(request, registries.catalog()).config;
}

/// The checkpoint by whose settings old ones go: what `latest` names, the highest whole one where that is none.
fs::path newest_of(const std::vector<CheckpointEntry>& entries) {
  const CheckpointEntry* out = nullptr;
  for (const CheckpointEntry& entry : entries) {
    out = entry.latest || (entry.fault.empty() && (out == nullptr || !out->latest)) ? &entry : out;
  }
  KF_CHECK(out != nullptr, Code::checkpoint, "{} holds no whole checkpoint; nothing is removed", entries.front().path.parent_path());
  return out->path;
}

}  // namespace

int checkpoint_prune(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint prune", {"--keep-last", "--script"}, {"--dry-run"}, false});
  KF_CHECK(list.words.size() == 1, Code::config, "one RUN, or a folder of checkpoints\n{}", usage::kCheckpoint);
  const bool removes = !list.has("--dry-run");
  const std::vector<CheckpointEntry> entries = checkpoints_in(list.words[0], Look::sizes);
  const fs::path newest = newest_of(entries), dir = newest.parent_path();
  KF_CHECK(newest != fs::path(list.words[0]), Code::config, "{} is one checkpoint; prune takes the folder that it lies in", newest);
  const std::optional<fs::path> run = run_folder_of(dir);
  std::optional<RunLock> lock;
  if (removes) {
    lock.emplace(run ? *run : dir);
  }
  const RecordedScript own = script_for(list.last("--script"), newest);
  ScriptSession script(own.path, own.arguments, own.copies);
  const config::Config config = settings_of(newest, script.registries());
  CheckpointOptions options = retention_of(config, script.registries());
  options.dir = dir;
  if (list.has("--keep-last")) {
    options.keep_last = option_number<std::int64_t>("--keep-last", list.last("--keep-last"), 1, kMost);
  }
  const std::optional<std::int64_t> step = CheckpointManager(options).latest();
  KF_CHECK(step.has_value(), Code::checkpoint, "`latest` in {} names no checkpoint, so that nothing says which are old; nothing is removed",
           dir);
  const SavedStep saved{*step, metric_in(dir / step_folder(*step), options.best_metric)};
  const std::vector<std::int64_t> old = outdated(saved_steps(dir, options), saved, options);
  double bytes = 0;
  for (const CheckpointEntry& entry : entries) {
    const bool goes =
        entry.step && entry.path.filename() == step_folder(*entry.step) && std::find(old.begin(), old.end(), *entry.step) != old.end();
    if (goes) {
      std::cout << entry.path.string() << "  " << human_bytes(static_cast<double>(entry.bytes)) << '\n';
      bytes += static_cast<double>(entry.bytes);
    }
  }
  if (removes) {
    remove_steps(dir, old);
  }
  std::cout << (removes ? "removed " : "would remove ") << old.size() << " of " << entries.size() << " checkpoints, " << human_bytes(bytes)
            << "; the newest " << options.keep_last << " stay, and milestones, the best and named ones\n";
  return 0;
}

}  // namespace kf
