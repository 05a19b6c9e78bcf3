#include <chrono>
#include <iostream>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "metrics/console.h"
#include "report/read/run_list.h"
#include "report/terminal/table.h"

namespace kf {
namespace {

using report::Cell;
using report::Color;
using report::printable;
using report::RunState;
using report::RunSummary;

const std::vector<std::string> kStates{"running", "finished", "stopped", "failed", "killed", "away", "unreadable"};
constexpr double kMostRuns = 1e9;

Color color_of(RunState state) {
  switch (state) {
    case RunState::running: return Color::green;
    case RunState::finished: return Color::none;
    case RunState::stopped:
    case RunState::away: return Color::yellow;
    default: return Color::red;
  }
}

std::string number(const std::optional<double>& value, int digits) { return value ? fixed(*value, digits) : "-"; }

std::string steps_of(const RunSummary& run) {
  const std::string done = run.step ? std::to_string(*run.step) : "-";
  return run.max_steps ? done + "/" + std::to_string(*run.max_steps) : done;
}

/// Clocks of other machines may be ahead: nothing is younger than now.
std::string age_of(const RunSummary& run) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return run.changed > 0 ? human_seconds(std::max(0.0, now - run.changed)) : "-";
}

/// By its place below the folder that was asked for; the run that is that folder by its own name.
std::string name_of(const RunSummary& run, const fs::path& folder) {
  const std::string below = run.folder.lexically_proximate(folder).string();
  return printable(below.empty() || below == "." ? run.name : below);
}

void print_text(const report::RunList& list, const fs::path& folder) {
  const std::vector<report::TableColumn> columns{{"run", false, 0, 12}, {"state"},          {"step", true},   {"loss", true},
                                                 {"eval", true, 3},     {"tok/s", true, 4}, {"age", true, 2}, {"why", false, 5, 12}};
  std::vector<std::vector<Cell>> rows;
  for (const RunSummary& run : list.runs) {
    rows.push_back({{name_of(run, folder)},
                    {std::string(to_word(run.state)), color_of(run.state)},
                    {steps_of(run)},
                    {number(run.loss, 4)},
                    {number(run.eval_loss, 4)},
                    {run.tokens_per_sec ? short_count(*run.tokens_per_sec) : "-"},
                    {age_of(run)},
                    {printable(run.reason)}});
  }
  if (rows.empty()) {
    std::cout << "no runs in " << printable(folder.string()) << '\n';
  } else {
    std::cout << table(columns, rows, report::stdout_screen());
  }
  for (const report::Unreadable& place : list.unreadable) {
    std::cerr << printable(place.path.string()) << ": " << place.fault << '\n';
  }
}

template <class T>
config::Node node_of(const std::optional<T>& value) {
  return value ? config::Node(*value) : config::Node();
}

config::Table to_table(const RunSummary& run) {
  config::Table out;
  out["folder"] = config::Node(printable(run.folder.string()));
  out["id"] = config::Node(run.id);
  out["name"] = config::Node(printable(run.name));
  out["tags"] = config::Node(config::Array(run.tags.begin(), run.tags.end()));
  out["state"] = config::Node(std::string(to_word(run.state)));
  out["reason"] = config::Node(printable(run.reason));
  out["step"] = node_of(run.step);
  out["max_steps"] = node_of(run.max_steps);
  out["loss"] = node_of(run.loss);
  out["eval_loss"] = node_of(run.eval_loss);
  out["tokens"] = node_of(run.tokens);
  out["tokens_per_sec"] = node_of(run.tokens_per_sec);
  out["began"] = config::Node(run.began);
  out["changed"] = config::Node(run.changed);
  out["starts"] = config::Node(run.starts);
  out["host"] = config::Node(run.host);
  out["device"] = config::Node(run.device);
  return out;
}

void print_json(const report::RunList& list) {
  config::Array runs, unreadable;
  for (const RunSummary& run : list.runs) {
    runs.emplace_back(to_table(run));
  }
  for (const report::Unreadable& place : list.unreadable) {
    config::Table row;
    row["path"] = config::Node(printable(place.path.string()));
    row["fault"] = config::Node(place.fault);
    unreadable.emplace_back(std::move(row));
  }
  config::Table out;
  out["runs"] = config::Node(std::move(runs));
  out["unreadable"] = config::Node(std::move(unreadable));
  std::cout << config::to_json(config::with_finite_numbers(config::Node(std::move(out)))) << '\n';
}

/// The newest `most` runs in `state`, "" for all.
void keep(report::RunList& list, const std::string& state, std::size_t most) {
  std::erase_if(list.runs, [&state](const RunSummary& run) { return !state.empty() && to_word(run.state) != state; });
  if (list.runs.size() > most) {
    list.runs.erase(list.runs.begin(), list.runs.end() - static_cast<std::ptrdiff_t>(most));
  }
}

}  // namespace

int runs_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host runs", {"--state", "--last"}, {"--json"}, false});
  KF_CHECK(options.words.size() <= 1, Code::config, "one folder, or none for runs\n{}", usage::kRuns);
  if (options.has("--state")) {
    check_word("--state", options.last("--state"), kStates);
  }
  const fs::path folder = options.words.empty() ? "runs" : options.words[0];
  const bool none_yet = options.words.empty() && !fs::exists(folder);
  report::RunList list = none_yet ? report::RunList() : report::list_runs(folder);
  keep(list, options.last("--state"),
       options.has("--last") ? option_number<std::size_t>("--last", options.last("--last"), 1, kMostRuns) : list.runs.size());
  options.has("--json") ? print_json(list) : print_text(list, folder);
  return 0;
}

}  // namespace kf
