#include "checkpoint/retention.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "checkpoint/file_check.h"
#include "checkpoint/files/folder.h"
#include "checkpoint/state_file.h"
#include "core/log.h"

namespace kf {
namespace {

/// The steps of the best ones; of equal ones the older.
std::set<std::int64_t> best_of(std::vector<SavedStep> steps, const CheckpointOptions& options) {
  std::erase_if(steps, [](const SavedStep& one) { return !one.metric; });
  std::sort(steps.begin(), steps.end(), [&](const SavedStep& a, const SavedStep& b) {
    if (*a.metric != *b.metric) {
      return options.best_is_largest ? *a.metric > *b.metric : *a.metric < *b.metric;
    }
    return a.step < b.step;
  });
  steps.resize(std::min(steps.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.keep_best, 0))));
  std::set<std::int64_t> out;
  for (const SavedStep& one : steps) {
    out.insert(one.step);
  }
  return out;
}

}  // namespace

std::string step_folder(std::int64_t step) { return "step_" + std::to_string(step); }

std::vector<std::int64_t> steps_in(const fs::path& dir) {
  std::vector<std::int64_t> steps;
  std::error_code none;
  if (!fs::is_directory(dir, none)) {
    return steps;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    std::error_code loop;  // a link to itself is no folder
    if (const auto step = step_of(entry.path().filename().string()); step && entry.is_directory(loop)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::optional<double> metric_of(const CheckpointState& state, const std::string& best_metric) {
  const std::optional<EvalResult> eval = eval_in(state.values);
  const std::optional<double> number = eval && eval->step == state.run.step ? find_number(*eval, best_metric) : std::nullopt;
  return number && !std::isnan(*number) ? number : std::nullopt;
}

std::optional<double> metric_in(const fs::path& checkpoint, const std::string& best_metric) {
  try {
    return metric_of(read_state_file(checkpoint).state, best_metric);
  } catch (const std::exception&) {  // whoever loads it is told
    return std::nullopt;
  }
}

std::vector<SavedStep> saved_steps(const fs::path& dir, const CheckpointOptions& options, std::int64_t below) {
  std::vector<SavedStep> out;
  std::int64_t whole = 0;
  for (const std::int64_t step : steps_in(dir)) {
    SavedStep& one = out.emplace_back(SavedStep{step});
    if (step < below && (options.keep_best > 0 || whole < options.keep_last)) {
      one.fault = checkpoint_fault(dir / step_folder(step), check_sizes);
      whole += one.fault.empty() ? 1 : 0;
    }
    if (options.keep_best > 0 && one.fault.empty()) {
      one.metric = metric_in(dir / step_folder(step), options.best_metric);
    }
  }
  return out;
}

std::vector<std::int64_t> outdated(std::vector<SavedStep> there, const SavedStep& saved, const CheckpointOptions& options) {
  std::vector<std::int64_t> out;
  if (options.keep_last <= 0) {
    return out;
  }
  std::erase_if(there, [&](const SavedStep& old) { return old.step >= saved.step; });
  there.push_back(saved);
  std::sort(there.begin(), there.end(), [](const SavedStep& a, const SavedStep& b) { return a.step > b.step; });
  const std::set<std::int64_t> best = best_of(there, options);
  std::int64_t whole = 0;
  for (const auto& [step, metric, fault] : there) {
    if (whole < options.keep_last) {
      whole += fault.empty() ? 1 : 0;
    } else if (!best.contains(step) && !(options.keep_forever && options.keep_forever(step))) {
      out.push_back(step);
    }
  }
  return out;
}

std::vector<std::int64_t> remove_steps(const fs::path& dir, const std::vector<std::int64_t>& steps) {
  std::vector<std::int64_t> left;
  for (const std::int64_t step : steps) {
    try {
      if (fs::exists(fs::symlink_status(dir / step_folder(step)))) {
        remove_folder(dir / step_folder(step));
      }
    } catch (const fs::filesystem_error& e) {
      log::warn("old checkpoints were not removed: {}", e.what());
      left.push_back(step);
    }
  }
  return left;
}

}  // namespace kf
