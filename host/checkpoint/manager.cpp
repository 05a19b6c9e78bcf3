#include "checkpoint/manager.h"

#include <csignal>
#include <utility>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/state_file.h"
#include "core/log.h"
#include "core/plain_file.h"

namespace kf {
namespace {

void check_name(const std::string& name) {
  const std::string problem = save_name_problem(name);
  KF_CHECK(problem.empty(), Code::checkpoint, "{} cannot name a checkpoint: it {}", kf::quoted(name), problem);
}

/// The newest whole one of a folder: what `latest` names comes first.
std::optional<fs::path> newest_in(const fs::path& dir, const FileCheck& check) {
  return as_checkpoint_error([&]() -> std::optional<fs::path> {
    std::error_code unreadable;  // a circle of links, say: making the folder will tell
    if (!fs::is_directory(dir, unreadable)) {
      return std::nullopt;
    }
    const std::vector<std::int64_t> steps = steps_in(dir);
    std::vector<fs::path> candidates;
    const fs::path link = dir / kLatestLink;
    if (fs::is_symlink(link)) {
      candidates.push_back(dir / fs::read_symlink(link));
    }
    for (const std::int64_t step : steps) {
      const fs::path path = dir / step_folder(step);
      if (candidates.empty() || path != candidates.front()) {
        candidates.push_back(path);
      }
    }
    for (const fs::path& candidate : candidates) {
      const std::string fault = checkpoint_fault(candidate, check);
      if (fault.empty()) {
        const auto step = step_of(candidate.filename().string());
        if (step && steps.front() > *step) {
          log::info("going on from {}; {} is above it and will be run again", candidate.filename(), step_folder(steps.front()));
        }
        return candidate;
      }
      log::warn("skipped the checkpoint {}: {}", candidate, fault);
    }
    KF_CHECK(candidates.empty(), Code::checkpoint,
             "none of the checkpoints in {} can be used; move them away, or start over with run.fresh = true", dir);
    return std::nullopt;
  });
}

/// The newest whole one of a second folder, where it is above `step`.
std::optional<fs::path> newer_copy(const fs::path& mirror, std::int64_t step, const FileCheck& check) {
  return as_checkpoint_error([&]() -> std::optional<fs::path> {
    for (const std::int64_t copied : steps_in(mirror)) {
      fs::path candidate = mirror / step_folder(copied);
      if (copied <= step) {
        break;
      }
      const std::string fault = checkpoint_fault(candidate, check);
      if (fault.empty()) {
        log::info("going on from the copy {}: it is newer than what is left of the checkpoints themselves", candidate);
        return candidate;
      }
      log::warn("skipped the copy {}: {}", candidate, fault);
    }
    return std::nullopt;
  });
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
  return options_.dir / (name.empty() ? step_folder(step) : name);
}

void CheckpointManager::make_room(const fs::path& place) const {
  const bool named = !step_of(place.filename().string());
  KF_CHECK(!named || !fs::exists(fs::symlink_status(place)) || path_exists(place / kStateFile), Code::checkpoint,
           "{} exists and is no checkpoint; choose another name", place);
  fs::create_directories(options_.dir);
  try {
    remove_leftovers(options_.dir);
  } catch (const fs::filesystem_error& e) {
    log::warn("what a killed process left of a save was not removed: {}", e.what());
  }
}

std::vector<std::int64_t> CheckpointManager::outdated_by(const CheckpointState& state) const {
  try {
    const std::vector<SavedStep> there = saved_steps(options_.dir, options_, state.run.step);
    for (const SavedStep& one : there) {
      if (!one.fault.empty()) {
        log::warn("{} is damaged, and is not counted among the last ones that are kept: {}", options_.dir / step_folder(one.step),
                  one.fault);
      }
    }
    return outdated(there, {state.run.step, metric_of(state, options_.best_metric)}, options_);
  } catch (const fs::filesystem_error& e) {
    log::warn("old checkpoints are not removed: {}", e.what());
    return {};
  }
}

void CheckpointManager::publish(std::int64_t step, const std::vector<std::int64_t>& outdated) const {
  point_link(options_.dir / kLatestLink, step_folder(step));
  remove_steps(options_.dir, outdated);
}

void CheckpointManager::tidy(std::int64_t step) const {
  for (const fs::path& dir : {options_.dir, options_.mirror}) {
    try {
      const std::vector<SavedStep> there = saved_steps(dir, options_, step);
      for (const SavedStep& saved : there) {
        if (saved.step == step) {
          remove_steps(dir, outdated(there, saved, options_));
        }
      }
    } catch (const fs::filesystem_error& e) {
      log::warn("old checkpoints are not removed: {}", e.what());
    }
  }
}

std::optional<std::int64_t> CheckpointManager::latest() const {
  std::error_code none;
  const std::string name = fs::read_symlink(options_.dir / kLatestLink, none).filename().string();
  return fs::is_directory(options_.dir / name, none) ? step_of(name) : std::nullopt;
}

std::optional<fs::path> CheckpointManager::newest(const FileCheck& check) const {
  if (options_.mirror.empty()) {
    return newest_in(options_.dir, check);
  }
  std::optional<fs::path> own;
  std::string fault;
  try {
    own = newest_in(options_.dir, check);
  } catch (const Error& e) {
    fault = e.what();
  }
  const std::int64_t step = own ? step_of(own->filename().string()).value_or(-1) : -1;
  const std::optional<fs::path> copy = newer_copy(options_.mirror, step, check);
  KF_CHECK(copy || fault.empty(), Code::checkpoint, "{}; nor can one in checkpoint.mirror ({})", fault, options_.mirror);
  return copy ? copy : own;
}

}  // namespace kf
