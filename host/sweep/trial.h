#pragma once
// One trial as the store keeps it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree/node.h"
#include "sweep/distribution.h"

namespace kf::sweep {

/// As Optuna names them.
enum class TrialState { running, complete, pruned, fail, waiting };

/// "RUNNING", ...
std::string_view state_name(TrialState state);
/// Throws Code::data.
TrialState state_of(std::string_view name);

struct Trial {
  std::int64_t id = 0;      // of the row
  std::int64_t number = 0;  // from 0, without gaps
  TrialState state = TrialState::running;
  std::optional<double> value;  // of the objective; of a pruned trial the last report
  std::vector<Parameter> parameters;
  std::map<std::int64_t, double> reports;  // step -> value, nan where it was
  config::Table attributes;                // what the sweep notes: "values", "error", "worker", ...
  std::string started;                     // UTC, "2026-01-31 12:00:00.000000"; empty while it waits
  std::string completed;

  const Parameter* parameter(std::string_view name) const;
  /// The text of an attribute, or "".
  std::string text(std::string_view attribute) const;
  bool finished() const { return state == TrialState::complete || state == TrialState::pruned || state == TrialState::fail; }
  /// Between start and end; nothing while it runs.
  std::optional<double> seconds() const;
};

/// The complete trial with the best value, or null.
const Trial* best_of(const std::vector<Trial>& trials, bool maximise);

/// How many trials are in `state`.
std::int64_t count_of(const std::vector<Trial>& trials, TrialState state);

}  // namespace kf::sweep
