#include "report/page/run_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include "config/schema/schema.h"
#include "core/error.h"
#include "metrics/names/names.h"
#include "report/page/series_data.h"
#include "report/read/run_record.h"
#include "report/read/settings.h"

namespace kf::report {
namespace {

constexpr std::size_t kMostSamples = 500;

void write_pairs(JsonWriter& json, std::string_view name, const std::vector<std::pair<std::string, std::string>>& pairs) {
  json.key(name).begin_array();
  for (const auto& [key, value] : pairs) {
    json.begin_array().value(key).value(value).end_array();
  }
  json.end_array();
}

void write_settings(JsonWriter& json, const fs::path& folder) {
  const std::vector<Setting> changed = changed_settings(settings_of(folder));
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(changed.size());
  for (const auto& [key, value] : changed) {
    pairs.emplace_back(key, config::to_text(value));
  }
  write_pairs(json, "settings", pairs);
}

void write_record(JsonWriter& json, const fs::path& folder) {
  const Record record = read_record(folder);
  json.key("starts").begin_array();
  for (const Start& start : record.starts) {
    json.begin_object().member("time", start.time).member("end", start.end).member("status", start.status).member("step", start.step);
    json.member("command", start.command).member("error", start.error).end_object();
  }
  json.end_array();
  write_pairs(json, "environment",
              record.starts.empty() ? std::vector<std::pair<std::string, std::string>>() : environment_of(record.starts.back()));
}

void write_marks(JsonWriter& json, const fs::path& folder, const Columns& steps) {
  json.key("marks").begin_array();
  for (const Mark& mark : marks_of(folder, steps)) {
    json.begin_object().member("kind", to_word(mark.kind)).member("step", mark.step).member("time", mark.time);
    json.member("text", mark.text).end_object();
  }
  json.end_array();
}

void write_samples(JsonWriter& json, const fs::path& folder) {
  const std::vector<Sample> samples = samples_of(folder);
  json.key("samples").begin_array();
  for (std::size_t i = samples.size() - std::min(samples.size(), kMostSamples); i < samples.size(); ++i) {
    json.begin_object().member("step", samples[i].step).member("prompt", samples[i].prompt).member("text", samples[i].text).end_object();
  }
  json.end_array();
}

std::optional<double> last_of(const Columns& columns, std::string_view name) {
  const Column* const column = columns.find(name);
  if (column == nullptr) {
    return std::nullopt;
  }
  const auto found = std::find_if(column->values.rbegin(), column->values.rend(), [](double value) { return !is_gap(value); });
  return found != column->values.rend() ? std::optional(*found) : std::nullopt;
}

/// What names.def says of a name; null for a number of somebody's own.
const NumberRow* row_of(std::string_view name) {
  for (const NumberRow& row : number_rows()) {
    if (row.name == name || (row.name.find('*') != std::string_view::npos && glob_match(row.name, name))) {
      return &row;
    }
  }
  return nullptr;
}

/// Of the numbers of evaluations.
std::string_view eval_unit(std::string_view name) {
  const std::string_view number = name.substr(name.rfind('.') + 1);
  if (number == "loss" || number == "ema") {
    return "nats";
  }
  if (number == "accuracy" || number == "mtp_acceptance") {
    return "share";
  }
  return number == "tokens" ? "positions" : "";
}

}  // namespace

std::vector<ShownRun> shown_runs(std::vector<RunSummary> runs, const fs::path& root) {
  std::map<std::string, std::size_t> names;
  for (const RunSummary& run : runs) {
    ++names[run.name];
  }
  std::vector<ShownRun> out;
  for (RunSummary& run : runs) {
    std::string key = run.folder.lexically_proximate(root).generic_string();
    std::string label = names[run.name] == 1 ? run.name : key;
    out.push_back({std::move(run), std::move(key), std::move(label)});
  }
  return out;
}

void write_summary(JsonWriter& json, const ShownRun& run) {
  const RunSummary& of = run.summary;
  json.member("key", run.key).member("label", run.label).member("name", of.name).member("id", of.id).member("folder", of.folder.string());
  json.list("tags", of.tags)
      .member("state", to_word(of.state))
      .member("reason", of.reason)
      .member("host", of.host)
      .member("device", of.device);
  json.member("step", of.step).member("max_steps", of.max_steps).member("loss", of.loss).member("eval_loss", of.eval_loss);
  json.member("tokens", of.tokens).member("tokens_per_sec", of.tokens_per_sec).member("began", of.began);
  json.member("version", format("{} {} {}", of.changed, of.step.value_or(-1), to_word(of.state)));
}

void write_details(JsonWriter& json, const ShownRun& run, RowFile& rows, std::size_t buckets) {
  const fs::path& folder = run.summary.folder;
  std::vector<std::string> problems;
  const auto attempt = [&](const auto& write) {
    JsonWriter part;  // one that fails half way leaves nothing
    try {
      part.begin_object();
      write(part);
      const std::string_view members = std::string_view(part.text()).substr(1);
      if (!members.empty()) {
        json.members(members);
      }
    } catch (const std::exception& e) {
      problems.emplace_back(e.what());
    }
  };
  attempt([&](JsonWriter&) { rows.read(); });
  attempt([&](JsonWriter& part) { write_series(part, rows, buckets); });
  attempt([&](JsonWriter& part) { write_record(part, folder); });
  attempt([&](JsonWriter& part) { write_settings(part, folder); });
  attempt([&](JsonWriter& part) { write_marks(part, folder, rows.steps()); });
  attempt([&](JsonWriter& part) { write_samples(part, folder); });
  json.member("seconds", last_of(rows.steps(), "seconds"));
  if (rows.broken_count() > 0) {
    const BrokenLine& first = rows.broken().front();
    problems.push_back(format("{} of the lines of metrics.jsonl are no rows and were passed over; the first is line {}: {}",
                              rows.broken_count(), first.line, first.fault));
  }
  json.list("problems", problems);
}

void write_defaults(JsonWriter& json) {
  json.key("defaults").begin_object();
  for (const config::Row& row : config::rows()) {
    json.member(row.key(), config::to_text(row.fallback));
  }
  json.end_object();
}

void write_numbers(JsonWriter& json, const std::vector<std::string>& names) {
  json.key("numbers").begin_object();
  for (const std::string& name : names) {
    const NumberRow* const row = row_of(name);
    const bool of_eval = name.starts_with("eval.");
    if (row != nullptr || of_eval) {
      json.key(name).begin_object().member("unit", of_eval ? eval_unit(name) : row->unit);
      json.member("doc", of_eval ? std::string_view("Of an evaluation (docs/evaluation.md).") : row->doc).end_object();
    }
  }
  json.end_object();
}

}  // namespace kf::report
