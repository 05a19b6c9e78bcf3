#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "app/command/commands.h"
#include "app/command/named_run.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "core/error.h"
#include "report/read/row_file.h"
#include "report/terminal/plot.h"

namespace kf {
namespace {

using report::printable;

constexpr std::size_t kColumns = 80;  // of what is no terminal
constexpr std::size_t kLeast = 20, kMost = 1000;

/// What the x axis may be, and the number of rows that it is; steps are no column.
const std::vector<std::string> kAxes{"step", "tokens", "seconds", "time"};

std::vector<std::string> metrics_of(const OptionList& options) {
  std::vector<std::string> out;
  for (const auto& [name, value] : options.options) {
    if (name == "--metric") {
      out.push_back(value);
    }
  }
  return out.empty() ? std::vector<std::string>{"loss"} : out;
}

/// Where none of the runs has a number, and why.
[[noreturn]] void no_metric(const fs::path& run, const std::string& metric) {
  report::RowFile rows(run / "metrics.jsonl");
  rows.read();
  const std::vector<std::string> names = rows.names();
  KF_CHECK(!names.empty(), Code::config, "{} has no rows yet", printable(run.string()));
  const std::string near = nearest(metric, names);
  fail(Code::config, "{} has no number '{}' in its rows{}; have: {}", printable(run.string()), printable(metric),
       near.empty() ? "" : "; did you mean '" + near + "'?", printable(join(names, ", ")));
}

/// The value of `axis` at each step of an evaluation, which has no column of it: that of the last row up to it.
std::vector<double> at_steps(const std::vector<std::int64_t>& steps, const report::Columns& rows, const report::Column& axis) {
  std::vector<double> out;
  std::size_t row = 0;
  for (const std::int64_t step : steps) {
    while (row + 1 < rows.rows() && rows.steps[row + 1] <= step) {
      ++row;
    }
    out.push_back(rows.rows() > 0 && rows.steps[row] <= step ? axis.values[row] : report::gap());
  }
  return out;
}

/// Empty where the run has no such number yet.
report::PlotSeries series_of(const fs::path& run, const std::string& metric, const std::string& axis, const report::RowFile& rows) {
  const report::RowFile::Series found = rows.find(metric);
  report::PlotSeries out;
  if (found.steps == nullptr) {
    return out;
  }
  out.y = *found.values;
  if (axis == "step") {
    out.x.assign(found.steps->begin(), found.steps->end());
    return out;
  }
  const report::Column* const column = rows.steps().find(axis);
  KF_CHECK(column != nullptr, Code::config, "{} has no number '{}' in its rows, so --x {} means nothing", printable(run.string()), axis,
           axis);
  out.x = metric.starts_with("eval.") ? at_steps(*found.steps, rows.steps(), *column) : column->values;
  for (std::size_t i = 0; i < out.x.size(); ++i) {
    out.y[i] = report::is_gap(out.x[i]) ? report::gap() : out.y[i];
    out.x[i] = report::is_gap(out.x[i]) ? (i > 0 ? out.x[i - 1] : 0) : out.x[i];
  }
  return out;
}

/// Leaves out what lies before `first`.
void begin_at(report::PlotSeries& series, double first) {
  const auto begin = std::lower_bound(series.x.begin(), series.x.end(), first) - series.x.begin();
  series.x.erase(series.x.begin(), series.x.begin() + begin);
  series.y.erase(series.y.begin(), series.y.begin() + begin);
}

/// "runs/a", or with several metrics "runs/a loss".
std::string label(const fs::path& run, const std::string& metric, bool several) {
  return printable(several ? run.string() + " " + metric : run.string());
}

std::vector<report::PlotSeries> all_series(const OptionList& options, const std::string& axis) {
  const std::vector<std::string> metrics = metrics_of(options);
  std::vector<std::string> wanted = metrics;
  wanted.push_back(axis);
  std::vector<report::PlotSeries> out;
  std::map<std::string, fs::path> unknown;  // metric to a run that lacks it
  std::set<std::string> known;
  for (const std::string& word : options.words) {
    const fs::path run = named_run(word);
    report::RowFile rows(run / "metrics.jsonl", wanted);
    rows.read();
    for (const std::string& metric : metrics) {
      out.push_back(series_of(run, metric, axis, rows));
      if (rows.find(metric).steps != nullptr) {
        known.insert(metric);
      } else {
        unknown.emplace(metric, run);
      }
      out.back().name = label(run, metric, metrics.size() > 1);
      if (options.has("--from")) {
        begin_at(out.back(), option_number<double>("--from", options.last("--from"), 0, 1e18));
      }
    }
    if (rows.broken_count() > 0) {
      std::cerr << printable(run.string()) << ": " << rows.broken_count() << " lines of metrics.jsonl are no rows; the first is line "
                << rows.broken().front().line << ": " << printable(rows.broken().front().fault) << '\n';
    }
  }
  for (const auto& [metric, run] : unknown) {
    if (!known.contains(metric)) {
      no_metric(run, metric);
    }
  }
  return out;
}

}  // namespace

int plot_command(const Arguments& args) {
  const OptionList options =
      parse_options(args, {"kf-host plot", {"--metric", "--x", "--from", "--width", "--height"}, {"--log-x", "--log-y"}, false});
  KF_CHECK(!options.words.empty(), Code::config, "which RUN?\n{}", usage::kPlot);
  const std::string axis = options.has("--x") ? options.last("--x") : "step";
  check_word("--x", axis, kAxes);
  const report::Screen screen = report::stdout_screen();
  report::PlotOptions look;
  look.x_name = axis;
  look.log_x = options.has("--log-x");
  look.log_y = options.has("--log-y");
  look.color = screen.color;
  look.columns = std::clamp(screen.columns > 0 ? screen.columns : kColumns, kLeast, kMost);
  if (options.has("--width")) {
    look.columns = option_number<std::size_t>("--width", options.last("--width"), kLeast, kMost);
  }
  if (options.has("--height")) {
    look.rows = option_number<std::size_t>("--height", options.last("--height"), 2, kMost);
  }
  const std::vector<std::string> metrics = metrics_of(options);
  const std::vector<report::PlotSeries> series = all_series(options, axis);
  std::cout << report::fitted(format("{}{} by {}{}", printable(join(metrics, ", ")), look.log_y ? " (logarithmic)" : "", axis,
                                     look.log_x ? " (logarithmic)" : ""),
                              look.columns, 2)
            << '\n'
            << report::plot(series, look);
  return 0;
}

}  // namespace kf
