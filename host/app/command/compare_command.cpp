#include <algorithm>
#include <iostream>
#include <map>

#include "app/command/commands.h"
#include "app/command/named_run.h"
#include "app/help/usage.h"
#include "app/line/option_list.h"
#include "config/show/emit.h"
#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/decimal.h"
#include "core/error.h"
#include "metrics/console.h"
#include "report/read/row_file.h"
#include "report/read/run_list.h"
#include "report/read/run_record.h"
#include "report/read/settings.h"
#include "report/terminal/table.h"

namespace kf {
namespace {

using report::printable;

/// A value for people and for programs, which get null where there is none.
struct Value {
  std::string text = "-";
  config::Node node;
};
Value word(std::string text) {
  config::Node node(text);
  return {std::move(text), std::move(node)};
}

/// What is compared: a name and its value in each run.
struct Row {
  std::string name;
  std::vector<Value> values;
};
struct Part {
  std::string title;
  std::vector<Row> rows;
};

bool differ(const Row& row) {
  return std::any_of(row.values.begin(), row.values.end(), [&row](const Value& value) { return value.text != row.values.front().text; });
}

/// About the folder alone: two runs never have them alike.
bool is_own(const std::string& key) { return key == "run.name" || key == "run.dir" || key == "run.id"; }

Part settings_part(const std::vector<fs::path>& runs, bool all) {
  std::vector<std::vector<report::Setting>> settings;
  for (const fs::path& run : runs) {
    try {
      settings.push_back(report::settings_of(run));
    } catch (const Error& error) {  // the others can still be compared
      std::cerr << printable(error.what()) << '\n';
      settings.emplace_back();
    }
  }
  Part out{"settings", {}};
  for (const report::SettingRow& row : report::compare_settings(settings, all)) {
    if (!all && is_own(row.key)) {
      continue;
    }
    Row shown{row.key, {}};
    for (const std::optional<config::Node>& value : row.values) {
      shown.values.push_back(value ? Value{printable(config::value_text(*value)), *value} : Value{"unset", {}});
    }
    out.rows.push_back(std::move(shown));
  }
  return out;
}

/// What a run has come to, in numbers and words.
using Results = std::vector<std::pair<std::string, Value>>;

Value real(const std::optional<double>& value) { return value ? Value{general(*value, 6), config::Node(*value)} : Value(); }

/// An integer, as `text` says it.
template <class T, class Text>
Value whole(const std::optional<T>& value, Text&& text) {
  return value ? Value{text(*value), config::Node(static_cast<std::int64_t>(*value))} : Value();
}

/// The best loss of its evaluations, and where.
Value best_of(const report::RowFile& rows) {
  const report::RowFile::Series evals = rows.find("eval.loss");
  std::optional<std::size_t> best;
  for (std::size_t i = 0; evals.values != nullptr && i < evals.values->size(); ++i) {
    const double loss = (*evals.values)[i];
    if (!report::is_gap(loss) && loss == loss && (!best || loss < (*evals.values)[*best])) {
      best = i;
    }
  }
  if (!best) {
    return {};
  }
  const double loss = (*evals.values)[*best];
  const std::int64_t step = (*evals.steps)[*best];
  config::Table table;
  table["loss"] = config::Node(loss);
  table["step"] = config::Node(step);
  return {format("{} at step {}", general(loss, 6), step), config::Node(std::move(table))};
}

std::optional<double> last_of(const report::RowFile& rows, const char* metric) {
  const report::RowFile::Series series = rows.find(metric);
  if (series.values == nullptr) {
    return std::nullopt;
  }
  const auto last = std::find_if(series.values->rbegin(), series.values->rend(), [](double value) { return !report::is_gap(value); });
  return last != series.values->rend() ? std::optional(*last) : std::nullopt;
}

std::optional<double> value_at(const report::RowFile& rows, const char* metric, std::int64_t step) {
  const report::RowFile::Series series = rows.find(metric);
  const auto row =
      series.steps != nullptr ? std::lower_bound(series.steps->begin(), series.steps->end(), step) : decltype(series.steps->begin())();
  if (series.steps == nullptr || row == series.steps->end() || *row != step) {
    return std::nullopt;
  }
  const double value = (*series.values)[static_cast<std::size_t>(row - series.steps->begin())];
  return report::is_gap(value) ? std::nullopt : std::optional(value);
}

/// The last step of which all runs have a row; 0 without one.
std::int64_t last_common_step(const std::vector<report::RowFile>& all) {
  const std::vector<std::int64_t>& first = all.front().steps().steps;
  for (auto step = first.rbegin(); step != first.rend(); ++step) {
    const bool common = std::all_of(all.begin(), all.end(), [&step](const report::RowFile& rows) {
      return std::binary_search(rows.steps().steps.begin(), rows.steps().steps.end(), *step);
    });
    if (common) {
      return *step;
    }
  }
  return 0;
}

Results results_of(const fs::path& run, const report::RowFile& rows, std::int64_t common) {
  const report::RunSummary summary = report::summary_of(run);
  const std::optional<double> seconds = last_of(rows, "seconds");
  const auto plain = [](auto count) { return std::to_string(count); };
  Results out{{"state", word(std::string(to_word(summary.state)))},
              {"steps", whole(summary.step, plain)},
              {"loss", real(last_of(rows, "loss"))},
              {"eval loss", real(last_of(rows, "eval.loss"))},
              {"best eval loss", best_of(rows)},
              {"tokens", whole(summary.tokens, [](auto count) { return grouped(static_cast<std::int64_t>(count)); })},
              {"steps without an update", whole(last_of(rows, "skipped"), [](double count) { return general(count, 6); })},
              {"time", seconds ? Value{human_seconds(*seconds), config::Node(*seconds)} : Value()},
              {"tokens a second",
               summary.tokens_per_sec ? Value{short_count(*summary.tokens_per_sec), config::Node(*summary.tokens_per_sec)} : Value()},
              {"starts", whole(std::optional(summary.starts), plain)}};
  if (common > 0) {
    out.insert(out.begin() + 3, {format("loss at step {}", common), real(value_at(rows, "loss", common))});
  }
  return out;
}

/// What the last start ran on and with.
Results environment_of(const fs::path& run) {
  try {
    const report::Record record = report::read_record(run);
    Results out;
    if (!record.starts.empty()) {
      for (const auto& [name, text] : report::environment_of(record.starts.back())) {
        out.emplace_back(name, word(text));
      }
    }
    return out;
  } catch (const Error& error) {
    std::cerr << printable(error.what()) << '\n';
    return {};
  }
}

Part side_by_side(std::string title, const std::vector<Results>& all, bool everything) {
  Part out{std::move(title), {}};
  std::vector<std::string> names;
  for (const Results& one : all) {
    for (const auto& [name, value] : one) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  for (const std::string& name : names) {
    Row row{printable(name), {}};
    for (const Results& one : all) {
      const auto found = std::find_if(one.begin(), one.end(), [&name](const auto& entry) { return entry.first == name; });
      row.values.push_back(found != one.end() ? Value{printable(found->second.text), found->second.node} : Value());
    }
    if (everything || differ(row)) {
      out.rows.push_back(std::move(row));
    }
  }
  return out;
}

/// One below the other, where side by side they are wider than the screen.
void print_stacked(const Part& part, const std::vector<std::string>& names, const report::Screen& screen) {
  std::cout << part.title << '\n';
  for (const Row& row : part.rows) {
    std::cout << report::colored(report::fitted(row.name, screen.columns, 2), screen.color ? report::Color::bold : report::Color::none)
              << '\n';
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::cout << report::fitted(format("  {}: {}", names[i], row.values[i].text), screen.columns, 4) << '\n';
    }
  }
}

void print(const Part& part, const std::vector<std::string>& names, const report::Screen& screen) {
  std::vector<report::TableColumn> columns{{part.title}};
  for (const std::string& name : names) {
    columns.push_back({name});
  }
  std::vector<std::vector<report::Cell>> rows;
  for (const Row& row : part.rows) {
    rows.push_back({{row.name}});
    for (const Value& value : row.values) {
      rows.back().push_back({value.text, differ(row) ? report::Color::yellow : report::Color::none});
    }
  }
  if (rows.empty()) {
    std::cout << "the " << part.title << " are alike\n";
  } else if (report::table_columns(columns, rows) <= screen.columns || screen.columns == 0) {
    std::cout << table(columns, rows, screen);
  } else {
    print_stacked(part, names, screen);
  }
}

/// {"runs": [...], "settings": {"optimizer.lr": [0.1, 0.2], ...}, "results": {"eval_loss": [...], ...}, ...}
void print_json(const std::vector<std::string>& names, const std::vector<Part>& parts) {
  config::Table out;
  out["runs"] = config::Node(config::Array(names.begin(), names.end()));
  for (const Part& part : parts) {
    config::Table table;
    for (const Row& row : part.rows) {
      std::string key = row.name;
      std::replace(key.begin(), key.end(), ' ', '_');
      config::Array values;
      for (const Value& value : row.values) {
        values.push_back(config::with_finite_numbers(value.node));
      }
      table[key] = config::Node(std::move(values));
    }
    out[part.title] = config::Node(std::move(table));
  }
  std::cout << config::to_json(config::Node(std::move(out))) << '\n';
}

}  // namespace

int compare_command(const Arguments& args) {
  const OptionList options = parse_options(args, {"kf-host compare", {}, {"--all", "--json"}, false});
  KF_CHECK(options.words.size() >= 2, Code::config, "two runs or more\n{}", usage::kCompare);
  const bool all = options.has("--all");
  std::vector<fs::path> runs;
  std::vector<std::string> names;
  std::vector<report::RowFile> rows;
  for (const std::string& word : options.words) {
    runs.push_back(named_run(word));
    names.push_back(printable(runs.back().string()));
    rows.emplace_back(runs.back() / "metrics.jsonl", std::vector<std::string>{"loss", "skipped", "seconds", "eval.loss"});
    rows.back().read();
  }
  const std::int64_t common = last_common_step(rows);
  std::vector<Results> results, environments;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    results.push_back(results_of(runs[i], rows[i], common));
    environments.push_back(environment_of(runs[i]));
  }
  const std::vector<Part> parts{settings_part(runs, all), side_by_side("results", results, all),
                                side_by_side("environments", environments, all)};
  if (options.has("--json")) {
    print_json(names, parts);
    return 0;
  }
  const report::Screen screen = report::stdout_screen();
  for (const Part& part : parts) {
    std::cout << (&part != &parts.front() ? "\n" : "");
    print(part, names, screen);
  }
  return 0;
}

}  // namespace kf
