#include "report/page/report.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <utility>

#include "core/error.h"
#include "report/page/page.h"
#include "report/page/run_data.h"
#include "report/page/sweep_data.h"
#include "report/read/run_list.h"

namespace kf::report {
namespace {

/// Stretches of a curve: as many as a wide chart has pixels, and fewer where many runs would make the page heavy.
std::size_t buckets_for(std::size_t runs) { return std::clamp<std::size_t>(24000 / std::max<std::size_t>(1, runs), 100, 1200); }

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::string out(20, '\0');
  std::strftime(out.data(), out.size() + 1, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return out;
}

void add_once(std::vector<fs::path>& list, const fs::path& folder) {
  const auto same = [&](const fs::path& other) {
    std::error_code ignored;
    return fs::equivalent(other, folder, ignored);
  };
  if (std::none_of(list.begin(), list.end(), same)) {
    list.push_back(folder);
  }
}

/// The folder that all lie in, as far as they have one in common.
fs::path common_folder(const std::vector<fs::path>& folders) {
  if (folders.empty()) {
    return {};
  }
  fs::path common = folders.front().parent_path();
  for (const fs::path& folder : folders) {
    const auto [end, unused] = std::mismatch(common.begin(), common.end(), folder.begin(), folder.end());
    fs::path shared;
    for (auto part = common.begin(); part != end; ++part) {
      shared /= *part;
    }
    common = shared;
  }
  return common;
}

std::string title_of(const ReportPlan& plan) {
  if (plan.runs.size() == 1) {
    return summary_of(plan.runs.front()).name;
  }
  std::vector<fs::path> all = plan.runs;
  all.insert(all.end(), plan.sweeps.begin(), plan.sweeps.end());
  const std::string name = all.size() == 1 ? all.front().filename().string() : common_folder(all).filename().string();
  return name.empty() ? "Runs" : name;
}

}  // namespace

ReportPlan plan_report(const std::vector<std::string>& words) {
  ReportPlan plan;
  for (const std::string& word : words) {
    std::error_code error;
    fs::path folder = fs::canonical(word, error);
    KF_CHECK(!error && fs::is_directory(folder, error), Code::config,
             "{} is no folder; name the folders of runs, of sweeps, or one with such", word);
    if (is_run(folder)) {
      add_once(plan.runs, folder);
      continue;
    }
    if (is_sweep(folder)) {
      add_once(plan.sweeps, folder);
      continue;
    }
    const RunList list = list_runs(folder);
    for (const Unreadable& lost : list.unreadable) {
      plan.problems.push_back(format("{}: {}", lost.path, lost.fault));
    }
    for (const RunSummary& run : list.runs) {
      const fs::path sweep = sweep_of(run.folder);
      add_once(sweep.empty() ? plan.runs : plan.sweeps, sweep.empty() ? run.folder : sweep);
    }
    KF_CHECK(!list.runs.empty(), Code::config, "there are no runs in {}; a run's folder has a run.json", word);
  }
  return plan;
}

std::string report_html(const ReportPlan& plan) {
  std::vector<RunSummary> summaries;
  summaries.reserve(plan.runs.size());
  for (const fs::path& folder : plan.runs) {
    summaries.push_back(summary_of(folder));
  }
  const std::string title = title_of(plan);
  JsonWriter json;
  json.begin_object().member("live", false).member("made", utc_now());
  std::set<std::string> names;
  json.key("runs").begin_array();
  for (const ShownRun& run : shown_runs(std::move(summaries), common_folder(plan.runs))) {
    json.begin_object();
    write_summary(json, run);
    RowFile rows(run.summary.folder / "metrics.jsonl");
    write_details(json, run, rows, buckets_for(plan.runs.size()));
    json.end_object();
    for (std::string& name : rows.names()) {
      names.insert(std::move(name));
    }
  }
  json.end_array();
  write_numbers(json, {names.begin(), names.end()});
  write_defaults(json);
  std::vector<std::string> problems = plan.problems;
  write_sweeps(json, plan.sweeps, problems);
  json.list("problems", problems).end_object();
  return page_html(title, json.text(), random_digits(), false);
}

}  // namespace kf::report
