#include "checkpoint/manager.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/state_file.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

constexpr const char* kLatest = "latest";

/// What is left undone here costs disk space, not the checkpoint that has just been saved.
template <class Body>
void tidy_up(Body&& body) {
  try {
    body();
  } catch (const fs::filesystem_error& e) {
    log::warn("old checkpoints were not removed: {}", e.what());
  }
}

/// Steps below `dir`, highest first.
std::vector<std::int64_t> steps_in(const fs::path& dir) {
  std::vector<std::int64_t> steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    std::error_code loop;  // a link to itself is no folder
    if (const auto step = step_of(entry.path().filename().string()); step && entry.is_directory(loop)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string folder_name(std::int64_t step) { return "step_" + std::to_string(step); }

void check_name(const std::string& name) {
  const std::string problem = save_name_problem(name);
  KF_CHECK(problem.empty(), Code::checkpoint, "{} cannot name a checkpoint: it {}", kf::quoted(name), problem);
}

/// The newest `keep_last` steps up to `step` stay, and so do milestones and what `latest` names. Higher steps, left by a run that was set
/// back, are not counted and not touched.
void remove_old(const CheckpointOptions& options, std::int64_t step) {
  if (options.keep_last <= 0) {
    return;
  }
  std::int64_t kept = 0;
  for (const std::int64_t old : steps_in(options.dir)) {
    const bool counted = old <= step && kept++ < options.keep_last;
    if (old < step && !counted && !(options.keep_forever && options.keep_forever(old))) {
      remove_folder(options.dir / folder_name(old));
    }
  }
}

}  // namespace

CheckpointManager::CheckpointManager(CheckpointOptions options) : options_(std::move(options)) {
  // A limit on file sizes (ulimit -f) then makes write() fail, which is reported, instead of ending the process without a word.
  std::signal(SIGXFSZ, SIG_IGN);
}

fs::path CheckpointManager::place(std::int64_t step, const std::string& name) const {
  if (!name.empty()) {
    check_name(name);
  }
  return options_.dir / (name.empty() ? folder_name(step) : name);
}

void CheckpointManager::make_room(const fs::path& place) const {
  const bool named = !step_of(place.filename().string());
  KF_CHECK(!named || !fs::exists(fs::symlink_status(place)) || path_exists(place / kStateFile), Code::checkpoint,
           "{} exists and is no checkpoint; choose another name", place);
  fs::create_directories(options_.dir);
  tidy_up([&] { remove_leftovers(options_.dir); });
}

void CheckpointManager::publish(std::int64_t step) const {
  point_link(options_.dir / kLatest, folder_name(step));
  tidy_up([&] { remove_old(options_, step); });
}

std::optional<fs::path> CheckpointManager::newest() const {
  return as_checkpoint_error([&]() -> std::optional<fs::path> {
    std::error_code unreadable;  // a circle of links, say: making the folder will tell
    if (!fs::is_directory(options_.dir, unreadable)) {
      return std::nullopt;
    }
    const std::vector<std::int64_t> steps = steps_in(options_.dir);
    std::vector<fs::path> candidates;
    const fs::path link = options_.dir / kLatest;
    if (fs::is_symlink(link)) {
      candidates.push_back(options_.dir / fs::read_symlink(link));
    }
    for (const std::int64_t step : steps) {
      const fs::path path = options_.dir / folder_name(step);
      if (candidates.empty() || path != candidates.front()) {
        candidates.push_back(path);
      }
    }
    for (const fs::path& candidate : candidates) {
      const std::string fault = checkpoint_fault(candidate);
      if (fault.empty()) {
        const auto step = step_of(candidate.filename().string());
        if (step && steps.front() > *step) {
          log::info("going on from {}; {} is above it and will be run again", candidate.filename(), folder_name(steps.front()));
        }
        return candidate;
      }
      log::warn("skipped the checkpoint {}: {}", candidate, fault);
    }
    KF_CHECK(candidates.empty(), Code::checkpoint,
             "none of the checkpoints in {} can be used; move them away, or start over with run.fresh = true", options_.dir);
    return std::nullopt;
  });
}

}  // namespace kf
