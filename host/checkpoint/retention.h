#pragma once
// Which checkpoints of a folder stay. What is decided is derived from the folders and what lies in them, so a restart decides alike.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/state.h"
#include "core/fs.h"

namespace kf {

struct CheckpointOptions {
  fs::path dir = {};
  std::int64_t keep_last = 3;                           // <= 0 keeps all
  std::function<bool(std::int64_t)> keep_forever = {};  // milestones; may be empty, and may be a script: for the training thread
  std::int64_t keep_best = 0;                           // so many stay for their metric; 0: none
  std::string best_metric = "loss";                     // a number of the evaluation of the checkpoint's own step
  bool best_is_largest = false;
  fs::path mirror = {};  // a second folder; empty: none
};

/// A step_N folder.
struct SavedStep {
  std::int64_t step = 0;
  std::optional<double> metric = {};  // of options.best_metric, where it is asked for, known and a number
  std::string fault = {};             // why it cannot be used, by the sizes of its files; "" too where nobody has looked
};

/// Steps below `dir`, highest first; none where there is no such folder.
std::vector<std::int64_t> steps_in(const fs::path& dir);

/// What options.best_metric is in this state: nothing where the evaluation is of another step, or has no such number.
std::optional<double> metric_of(const CheckpointState& state, const std::string& best_metric);

/// The step_N folders of `dir`, highest first, with their metrics where the options compare them. Below step `below` they are looked into
/// until keep_last are whole, or all of them for the metrics; damaged ones have none.
std::vector<SavedStep> saved_steps(const fs::path& dir, const CheckpointOptions& options, std::int64_t below);

/// Those of `there` that go once `saved` has come to them: the newest keep_last up to it stay, and so do milestones and the best ones.
/// Damaged ones are not counted, and go when as many whole ones are newer. Higher steps, left by a run that was set back, are not counted
/// and not named.
std::vector<std::int64_t> outdated(std::vector<SavedStep> there, const SavedStep& saved, const CheckpointOptions& options);

/// The same of the checkpoint in this folder; nothing where that cannot be read.
std::optional<double> metric_in(const fs::path& checkpoint, const std::string& best_metric);

/// The relative symbolic link that names the newest one.
inline constexpr const char* kLatestLink = "latest";

/// "step_N".
std::string step_folder(std::int64_t step);

/// Removes them. What is left undone costs disk space, not a checkpoint: it is a warning. Returns the steps that are still there.
std::vector<std::int64_t> remove_steps(const fs::path& dir, const std::vector<std::int64_t>& steps);

}  // namespace kf
