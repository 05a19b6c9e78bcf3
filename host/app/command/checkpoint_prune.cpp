#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <utility>

#include "app/command/checkpoint_commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "app/script/inference.h"
#include "app/script/script_session.h"
#include "checkpoint/catalog.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/manager.h"
#include "checkpoint/state_file.h"
#include "config/load/load.h"
#include "core/error.h"
#include "core/log.h"
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

/// Checkpoints of a folder, and which of them can be counted upon.
class Shelf {
 public:
  explicit Shelf(const std::vector<CheckpointEntry>& entries) {
    for (const CheckpointEntry& entry : entries) {
      const std::optional<std::int64_t> step = step_of(entry.path.filename().string());
      if (step && entry.fault.empty()) {
        whole_.insert(*step);
      } else if (!entry.fault.empty()) {
        log::warn("{} is damaged; it is not counted, and stays: {}", entry.path, entry.fault);
      }
    }
    dir_ = entries.front().path.parent_path();
    latest_ = CheckpointManager({.dir = dir_}).latest();
    KF_CHECK(latest_.has_value(), Code::checkpoint,
             "`latest` in {} names no checkpoint, so that nothing says which are old; nothing is removed", dir_);
  }

  /// What `latest` names, the highest whole one where that is damaged. By its settings old ones go.
  std::int64_t newest() const {
    KF_CHECK(!whole_.empty(), Code::checkpoint, "{} holds no whole checkpoint; nothing is removed", dir_);
    return whole_.contains(*latest_) ? *latest_ : *whole_.rbegin();
  }

  /// Those that go. What the counts of `options` let stay for them has been read to the last byte.
  std::vector<std::int64_t> old(const CheckpointOptions& options) {
    CheckpointOptions counted = options;
    counted.keep_forever = {};
    for (;;) {
      std::vector<std::int64_t> out = outdated_by(options);
      const std::vector<std::int64_t> rest = outdated_by(counted);
      if (out.empty() || all_whole(rest)) {
        return out;
      }
    }
  }

 private:
  std::vector<std::int64_t> outdated_by(const CheckpointOptions& options) const {
    std::vector<SavedStep> there = saved_steps(dir_, options, 0);
    std::erase_if(there, [this](const SavedStep& one) { return !whole_.contains(one.step); });
    return outdated(std::move(there), {newest(), metric_in(dir_ / step_folder(newest()), options.best_metric)}, options);
  }

  /// Whether all that are counted, those that are not in `rest`, are what was written. Damaged ones are counted no more.
  bool all_whole(const std::vector<std::int64_t>& rest) {
    const std::set<std::int64_t> before = whole_;
    for (const std::int64_t step : before) {
      if (step > newest() || verified_.contains(step) || std::find(rest.begin(), rest.end(), step) != rest.end()) {
        continue;
      }
      const std::string fault = checkpoint_fault(dir_ / step_folder(step));
      if (fault.empty()) {
        verified_.insert(step);
      } else {
        log::warn("{} is damaged; it is not counted, and stays: {}", dir_ / step_folder(step), fault);
        whole_.erase(step);
        newest();  // throws where none is left
      }
    }
    return whole_.size() == before.size();
  }

  fs::path dir_;
  std::optional<std::int64_t> latest_;
  std::set<std::int64_t> whole_, verified_;
};

/// Prints the checkpoints of these steps, and returns the sum of their bytes.
double bytes_of(const std::vector<CheckpointEntry>& entries, const std::vector<std::int64_t>& steps, bool print) {
  double bytes = 0;
  for (const CheckpointEntry& entry : entries) {
    const std::optional<std::int64_t> step = step_of(entry.path.filename().string());
    if (step && std::find(steps.begin(), steps.end(), *step) != steps.end()) {
      if (print) {
        std::cout << entry.path.string() << "  " << human_bytes(static_cast<double>(entry.bytes)) << '\n';
      }
      bytes += static_cast<double>(entry.bytes);
    }
  }
  return bytes;
}

}  // namespace

int checkpoint_prune(const Arguments& args) {
  const OptionList list = parse_options(args, {"kf-host checkpoint prune", {"--keep-last", "--script"}, {"--dry-run"}, false});
  KF_CHECK(list.words.size() == 1, Code::config, "one RUN, or a folder of checkpoints\n{}", usage::kCheckpoint);
  const bool removes = !list.has("--dry-run");
  const std::vector<CheckpointEntry> entries = checkpoints_in(list.words[0], Look::sizes);
  const fs::path dir = entries.front().path.parent_path();
  KF_CHECK(entries.front().path != fs::path(list.words[0]), Code::config, "{} is one checkpoint; prune takes the folder that it lies in",
           entries.front().path);
  Shelf shelf(entries);
  const std::optional<fs::path> run = run_folder_of(dir);
  std::optional<RunLock> lock;
  if (removes) {
    lock.emplace(run ? *run : dir);
  }
  const fs::path newest = dir / step_folder(shelf.newest());
  const RecordedScript own = script_for(list.last("--script"), newest);
  ScriptSession script(own.path, own.arguments, own.copies);
  const config::Config config = settings_of(newest, script.registries());
  CheckpointOptions options = retention_of(config, script.registries());
  options.dir = dir;
  if (list.has("--keep-last")) {
    options.keep_last = option_number<std::int64_t>("--keep-last", list.last("--keep-last"), 1, kMost);
  }
  const std::vector<std::int64_t> old = shelf.old(options);
  const double bytes = bytes_of(entries, old, /*print=*/true);
  const std::vector<std::int64_t> left = removes ? remove_steps(dir, old) : std::vector<std::int64_t>();
  std::cout << (removes ? "removed " : "would remove ") << old.size() - left.size() << " of " << entries.size() << " checkpoints, "
            << human_bytes(bytes - bytes_of(entries, left, /*print=*/false)) << "; the newest " << options.keep_last
            << " whole ones stay, and milestones, the best and named ones\n"
            << std::flush;
  KF_CHECK(left.empty(), Code::checkpoint, "{} of {} checkpoints could not be removed; the warnings above say why", left.size(),
           old.size());
  return 0;
}

}  // namespace kf
