#include "metrics/wandb/wandb.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <set>
#include <system_error>
#include <utility>

#include "config/plan/plan.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/tracker/job_settings.h"
#include "metrics/tracker/make_folder.h"
#include "metrics/tracker/numbers.h"
#include "metrics/wandb/record_log.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

constexpr std::size_t kMostWaiting = std::size_t{256} << 20U;  // bytes

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// A number as their JSON has it: integers without a point, and bare words for what JSON lacks.
std::string number_json(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  }
  constexpr double kExact = 9007199254740992.0;  // 2^53
  return value == std::floor(value) && std::fabs(value) < kExact ? to_text(static_cast<std::int64_t>(value)) : config::json_number(value);
}

std::string list_json(const std::vector<double>& values) {
  std::vector<std::string> texts;
  std::transform(values.begin(), values.end(), std::back_inserter(texts), number_json);
  return "[" + join(texts, ", ") + "]";
}

/// Ids name files and stand in addresses; metrics.wandb_run_id has been checked, run.id may be any text.
std::string id_of(const RunInfo& run) {
  std::string id = run.config.metrics.wandb_run_id.empty() ? run.id : run.config.metrics.wandb_run_id;
  std::replace_if(
      id.begin(), id.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.'; },
      '-');
  return id.substr(0, 128);
}

/// The folder of this id that an earlier start has made, or a new one's name.
fs::path folder_of(const fs::path& root, const std::string& id) {
  if (path_exists(root)) {
    for (const auto& entry : fs::directory_iterator(root)) {
      const std::string name = entry.path().filename().string();
      constexpr std::size_t date = std::string_view("offline-run-YYYYMMDD_hhmmss-").size();
      if (name.starts_with("offline-run-") && name.size() > date && name.substr(date) == id) {
        return entry.path();
      }
    }
  }
  const std::time_t time = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&time, &local);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y%m%d_%H%M%S", &local);
  return root / format("offline-run-{}-{}", date.data(), id);
}

wandb::Items config_items(const Table& settings) {
  wandb::Items out;
  for (const auto& [section, node] : settings) {
    out.emplace_back(section, config::to_json(node));
  }
  return out;
}

}  // namespace

void WandbSink::begin(const RunInfo& run) {
  const config::MetricsConfig& metrics = run.config.metrics;
  const std::string id = id_of(run);
  const fs::path folder = folder_of(run.plan.dir / "wandb", id);
  make_folder(folder / "files", "run.dir");  // where their programs put what they make of a run
  head_ = {id,    metrics.wandb_project,          metrics.wandb_run_name.value_or(run.plan.name), host_name(), run.config.run.tags,
           now(), config_items(job_settings(run))};
  late_.emplace(folder / format("run-{}.wandb", id), "rows");
  const std::string fault = unlike_a_file(late_->path());
  KF_CHECK(fault.empty() || !path_exists(late_->path()), Code::other, "cannot read {}: {}", late_->path(), fault);
  late_->waiting() = std::exchange(loaded_, {});
  leave_out(run.completed_steps);
  late_->cut(run.completed_steps);
  settle();
}

/// Writes the file anew: the run, and the rows up to a step. What `wandb sync` has seen of it is not all.
void WandbSink::keep(std::int64_t completed) {
  KF_CHECK(make_folder(late_->path().parent_path() / "files", "run.dir"), Code::other, "cannot make the folder {}: the disk is full",
           late_->path().parent_path());
  std::string text = wandb::log_header();
  std::set<std::int64_t> there;
  number_ = 0;
  summary_.clear();
  std::string rows;
  wandb::LogContent old;
  if (path_exists(late_->path())) {
    old = wandb::read_log(read_file(late_->path()));
    if (!old.whole) {
      log::warn("{}: left out what was not written to its end", late_->path());
    }
  }
  for (const std::string& record : old.records) {
    head_.start = wandb::start_of(record).value_or(head_.start);
  }
  const auto write = [&](const std::string& record) { text += wandb::framed(wandb::numbered(++number_, record), text.size()); };
  write(wandb::run_record(head_));
  for (const std::string& record : old.records) {
    const std::optional<wandb::History> row = wandb::history_of(record);
    if (row && completed > 0 && row->step <= completed) {
      write(wandb::unnumbered(record));
      sum_up(row->items);
      there.insert(row->step);
    }
  }
  write_file_atomic(late_->path(), text);
  HeldFile opened(late_->path());
  file_ = std::move(opened);
  size_ = text.size();
  std::error_code error;
  fs::remove(fs::path(late_->path()) += ".synced", error);  // by `wandb sync`: there will be more
  // What waited when a checkpoint was saved may have been written since.
  std::erase_if(late_->waiting(), [&](const StepRecord& record) { return there.contains(record.step); });
  bytes_ = bytes_of(late_->waiting());
}

void WandbSink::leave_out(std::int64_t step) {
  late_->leave_out(step, [](const StepRecord& record) { return record.step; });
  bytes_ = bytes_of(late_->waiting());
}

void WandbSink::sum_up(const wandb::Items& items) {
  for (const auto& [name, json] : items) {
    summary_[name] = json;
  }
}

/// What comes for another step than the one before ends its row.
void WandbSink::to_step(std::int64_t step) {
  if (step != step_) {
    flush();
  }
  step_ = step;
}

void WandbSink::put(const std::string& name, std::string json) {
  const auto there = std::find_if(running_.begin(), running_.end(), [&name](const auto& item) { return item.first == name; });
  if (there != running_.end()) {
    there->second = std::move(json);
  } else {
    running_.emplace_back(name, std::move(json));
  }
}

void WandbSink::row(const StepRow& row) {
  to_step(row.step);
  for (const auto& [name, value] : tracked_numbers(row)) {
    put(name, number_json(value));
  }
  put("_timestamp", number_json(row.time));
  seconds_ = row.seconds;
}

void WandbSink::eval(const EvalResult& result) {
  to_step(result.step);
  for (const auto& [name, value] : tracked_numbers(result)) {
    put(name, number_json(value));
  }
}

void WandbSink::text(const TextSample& sample) {
  to_step(sample.step);
  put(sample.name, kf::quoted(sample.text));
}

void WandbSink::histograms(const Histograms& all) {
  to_step(all.step);
  for (const Histogram& histogram : all.all) {
    const Bars bars = bars_of(histogram);
    if (!bars.counts.empty()) {
      put(histogram.name, format(R"({"_type": "histogram", "values": {}, "bins": {}})", list_json(bars.counts), list_json(bars.edges)));
    }
  }
}

void WandbSink::step_over(std::int64_t /*step*/) { flush(); }

void WandbSink::flush() {
  if (running_.empty()) {
    return;
  }
  const bool timed = std::any_of(running_.begin(), running_.end(), [](const auto& item) { return item.first == "_timestamp"; });
  if (!timed) {
    put("_timestamp", number_json(now()));
  }
  put("_runtime", number_json(seconds_));
  put("_step", to_text(step_));
  put_record(step_, wandb::history_record(step_, std::exchange(running_, {})));
}

void WandbSink::put_record(std::int64_t step, std::string record) {
  bytes_ += record.size();
  late_->waiting().push_back({step, std::move(record)});
  settle();
  late_->check_room(bytes_ <= kMostWaiting, format("rows of {} steps, {} MiB,", late_->waiting().size(), bytes_ >> 20U));
}

void WandbSink::append(const StepRecord& record) {
  const std::string text = wandb::framed(wandb::numbered(number_ + 1, record.bytes), size_);
  file_->append(text);
  ++number_;
  size_ += text.size();
  bytes_ -= record.bytes.size();
  if (const std::optional<wandb::History> row = wandb::history_of(record.bytes)) {
    sum_up(row->items);
  }
}

void WandbSink::settle() {
  late_->settle(
      file_, [this](std::int64_t step) { keep(step); }, [this](const StepRecord& record) { append(record); });
}

void WandbSink::rewind(std::int64_t step) {
  flush();
  leave_out(step);
  late_->cut(step);
  settle();
}

/// With the last values so far, for a run that is killed.
void WandbSink::before_save() {
  flush();
  put_record(step_, wandb::summary_record({summary_.begin(), summary_.end()}));
  late_->before_save(file_);
}

void WandbSink::saved(std::int64_t /*step*/, const fs::path& /*checkpoint*/) { late_->sync(file_); }

void WandbSink::end(const RunResult& result) {
  flush();
  put_record(result.step, wandb::summary_record({summary_.begin(), summary_.end()}));
  put_record(result.step, wandb::exit_record(seconds_));
  put_record(result.step, wandb::final_record());
  if (late_->is_on()) {
    settle();
  }
  late_->check_end();
}

Node WandbSink::state() {
  flush();  // what the running step has so far belongs to the checkpoint
  return to_state(late_->waiting());
}

void WandbSink::load(const Node& state) { loaded_ = records_of(state, "Weights & Biases"); }

}  // namespace kf
