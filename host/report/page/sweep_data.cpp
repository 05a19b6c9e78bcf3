#include "report/page/sweep_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/plain_file.h"
#include "core/text.h"
#include "report/page/importance.h"
#include "sweep/objective.h"
#include "sweep/store.h"
#include "sweep/table.h"

namespace kf::report {
namespace {

constexpr const char* kStore = "study.db";

struct Axis {
  std::string name;
  bool log = false;
  double low = 0, high = 0;
  std::vector<std::string> labels;  // of a choice
};

/// The parameters that varied, with the range of the values that were drawn.
std::vector<Axis> axes_of(const std::vector<sweep::Trial>& trials) {
  std::vector<Axis> out;
  for (const sweep::Trial& trial : trials) {
    for (const sweep::Parameter& parameter : trial.parameters) {
      auto axis = std::find_if(out.begin(), out.end(), [&](const Axis& known) { return known.name == parameter.name; });
      if (axis == out.end()) {
        Axis added{parameter.name, parameter.distribution.log, parameter.stored, parameter.stored, {}};
        for (const config::Node& choice : parameter.distribution.choices) {
          added.labels.push_back(sweep::short_value(choice));
        }
        axis = out.insert(out.end(), std::move(added));
      }
      axis->low = std::min(axis->low, parameter.stored);
      axis->high = std::max(axis->high, parameter.stored);
    }
  }
  std::erase_if(out, [](const Axis& axis) { return axis.low == axis.high; });
  return out;
}

void write_axis(JsonWriter& json, const Axis& axis) {
  json.begin_object().member("name", axis.name).member("log", axis.log).member("low", axis.low).member("high", axis.high);
  json.list("labels", axis.labels).end_object();
}

void write_trial(JsonWriter& json, const sweep::Trial& trial, const std::vector<Axis>& axes) {
  json.begin_object().member("number", trial.number).member("state", lower(sweep::state_name(trial.state))).member("value", trial.value);
  json.member("seconds", trial.seconds()).key("values").begin_array();
  for (const Axis& axis : axes) {
    const sweep::Parameter* const parameter = trial.parameter(axis.name);
    json.value(parameter != nullptr ? std::optional(parameter->stored) : std::nullopt);
  }
  json.end_array().end_object();
}

}  // namespace

bool is_sweep(const fs::path& folder) { return path_exists(folder / kStore); }

fs::path sweep_of(const fs::path& run) {
  const fs::path trials = run.parent_path();
  return trials.filename() == "trials" && is_sweep(trials.parent_path()) ? trials.parent_path() : fs::path();
}

void write_sweep(JsonWriter& json, const fs::path& folder) {
  sweep::Store store(folder / kStore, sweep::Database::Mode::existing);
  store.open_study();
  const std::vector<sweep::Trial> trials = store.trials();
  const sweep::Trial* const best = sweep::best_of(trials, store.maximise());
  json.begin_object().member("name", store.name()).member("objective", sweep::objective_name(store)).member("maximise", store.maximise());
  json.member("best", best != nullptr ? std::optional(best->number) : std::nullopt);
  std::map<std::string, std::int64_t> counts;
  for (const sweep::Trial& trial : trials) {
    ++counts[lower(sweep::state_name(trial.state))];
  }
  json.key("counts").begin_object();
  for (const auto& [state, count] : counts) {
    json.member(state, count);
  }
  json.end_object().key("parameters").begin_array();
  const std::vector<Axis> axes = axes_of(trials);
  for (const Axis& axis : axes) {
    write_axis(json, axis);
  }
  json.end_array().key("trials").begin_array();
  for (const sweep::Trial& trial : trials) {
    write_trial(json, trial, axes);
  }
  json.end_array().key("importance").begin_array();
  for (const Importance& importance : importance_of(trials)) {
    json.begin_object().member("name", importance.name).member("share", importance.share).end_object();
  }
  json.end_array().end_object();
}

void write_sweeps(JsonWriter& json, const std::vector<fs::path>& folders, std::vector<std::string>& problems) {
  json.key("sweeps").begin_array();
  for (const fs::path& folder : folders) {
    try {
      JsonWriter one;
      write_sweep(one, folder);
      json.members(one.text());
    } catch (const Error& e) {
      problems.emplace_back(e.what());
    }
  }
  json.end_array();
}

}  // namespace kf::report
