#include "metrics/mlflow/mlflow.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "config/plan/plan.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/held_file.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/names/names.h"
#include "metrics/tracker/job_settings.h"
#include "metrics/tracker/make_folder.h"
#include "metrics/tracker/numbers.h"

namespace kf {
namespace {

using config::Node;

constexpr const char* kSetting = "metrics.mlflow_dir";
constexpr std::size_t kMostWaiting = 1000000;  // lines
constexpr std::size_t kLongestName = 250;      // of MLflow, in bytes,
constexpr std::size_t kLongestValue = 6000;    // and of a parameter
enum Status { running = 1, finished = 3, killed = 5 };

std::int64_t milliseconds(double seconds) { return std::llround(1000 * seconds); }
double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// What MLflow takes for a name, and a file system for a file's.
std::string file_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  const auto strange = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("_-. ").find(c) == std::string_view::npos;
  };
  std::replace_if(name.begin(), name.end(), strange, '_');
  return name.substr(0, kLongestName);
}

/// With digits that only this name has.
std::string told_apart(const std::string& name) {
  Digest digest;
  digest.add(name);
  const std::string digits = "-" + digest.hex().substr(0, 8);
  return file_name(name).substr(0, kLongestName - digits.size()) + digits;
}

/// The file of a number. Two names never share one, whichever comes first: '.' for '/' is readable and keeps names apart that have no '.'
/// of their own, and those that rows have themselves.
std::string metric_file(const std::string& name) {
  std::string dotted = name;
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  const bool own = is_row_key(name) || name.find('.') == std::string::npos;
  return own && !name.empty() && file_name(name) == dotted ? dotted : told_apart(name);
}

/// The file of a setting; keys have their '.'.
std::string setting_file(const std::string& key) { return file_name(key) == key ? key : told_apart(key); }

/// Ids are letters, digits, '_' and '-'.
std::string run_id(std::string id) {
  std::replace_if(
      id.begin(), id.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-'; }, '-');
  return id.empty() || std::isalnum(static_cast<unsigned char>(id.front())) == 0 ? "r" + id : id.substr(0, kLongestName);
}

void write_yaml(const fs::path& path, const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [key, value] : values) {
    text += key + ": " + value + "\n";
  }
  write_file_atomic(path, text);
}

/// The step of a line; nothing where it is none.
std::optional<std::int64_t> step_of(const std::string& line) {
  const std::vector<std::string> words = split(line, ' ');
  std::int64_t step = 0;
  if (words.size() != 3) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(words[2].data(), words[2].data() + words[2].size(), step);
  return error == std::errc() && end == words[2].data() + words[2].size() ? std::optional(step) : std::nullopt;
}

/// The experiment that is there without anybody's doing.
void make_experiment(const fs::path& folder) {
  if (!path_exists(folder / "meta.yaml")) {
    const std::string time = to_text(milliseconds(now()));
    write_yaml(folder / "meta.yaml", {{"artifact_location", kf::quoted(fs::absolute(folder).string())},
                                      {"creation_time", time},
                                      {"experiment_id", "'0'"},
                                      {"last_update_time", time},
                                      {"lifecycle_stage", "active"},
                                      {"name", "Default"}});
  }
}

/// By their files.
std::map<std::string, std::string> settings_of(const RunInfo& run) {
  std::map<std::string, std::string> out;
  for (const auto& [key, node] : setting_leaves(job_settings(run))) {
    const auto* const text = std::get_if<std::string>(&node.value);
    out[setting_file(key)] = (text != nullptr ? *text : config::to_text(node)).substr(0, kLongestValue);
  }
  return out;
}

void write_settings(const fs::path& folder, const std::map<std::string, std::string>& settings) {
  for (const auto& [name, value] : settings) {
    const fs::path file = folder / name;
    if (!path_exists(file) || read_regular_file(file, std::uint64_t{1} << 20U) != value) {
      fs::remove(file);
      HeldFile(file).append(value);  // hundreds of them: each made durable, they would take seconds
    }
  }
}

}  // namespace

void MlflowSink::begin(const RunInfo& run) {
  const std::string& dir = run.config.metrics.mlflow_dir;
  const fs::path store = dir == config::MetricsConfig().mlflow_dir ? run.plan.dir / dir : fs::path(dir);
  const std::string id = run_id(run.id);
  folder_ = store / "0" / id;
  make_folder(folder_, kSetting);
  meta_ = {{"artifact_uri", kf::quoted(fs::absolute(folder_ / "artifacts").string())},
           {"deleted_time", "null"},
           {"entry_point_name", "''"},
           {"experiment_id", "'0'"},
           {"lifecycle_stage", "active"},
           {"run_id", kf::quoted(id)},
           {"run_name", kf::quoted(run.plan.name)},
           {"run_uuid", kf::quoted(id)},
           {"source_name", "''"},
           {"source_type", "4"},  // LOCAL
           {"source_version", "''"},
           {"start_time", to_text(milliseconds(now()))},
           {"tags", "[]"},
           {"user_id", "''"}};
  name_ = run.plan.name;
  settings_ = settings_of(run);
  leave_out(run.completed_steps);
  settle();
}

/// What a run has beside its numbers.
void MlflowSink::write_head() {
  for (const char* part : {"metrics", "params", "tags", "artifacts"}) {
    KF_CHECK(make_folder(folder_ / part, kSetting), Code::other, "cannot make the folder {}: the disk is full", folder_ / part);
  }
  make_experiment(folder_.parent_path());
  if (path_exists(folder_ / "meta.yaml")) {  // the run began when it first began
    for (const std::string& line : split(read_regular_file(folder_ / "meta.yaml", std::uint64_t{1} << 20U), '\n')) {
      if (line.starts_with("start_time: ")) {
        meta_["start_time"] = line.substr(std::string_view("start_time: ").size());
      }
    }
  }
  write_meta(running, 0);
  write_settings(folder_ / "params", settings_);
  write_file_atomic(folder_ / "tags" / "mlflow.runName", name_);
  write_file_atomic(folder_ / "tags" / "mlflow.source.name", "kf-host");
}

/// Lines of later steps: those that wait at once, since the same steps come again, those of files when they can be written.
void MlflowSink::leave_out(std::int64_t completed) {
  std::erase_if(waiting_, [completed](const Line& line) { return completed == 0 || line.step > completed; });
  cut_ = std::min(completed, cut_.value_or(completed));
}

void MlflowSink::write_meta(int status, std::int64_t end_time) {
  std::map<std::string, std::string> meta = meta_;
  meta["status"] = to_text(status);
  meta["end_time"] = end_time == 0 ? "null" : to_text(end_time);
  write_yaml(folder_ / "meta.yaml", meta);
}

/// Removes what is of later steps, and lines that a killed run left half-written.
void MlflowSink::keep(std::int64_t completed) {
  std::map<std::string, std::int64_t> newest;
  for (const auto& entry : fs::directory_iterator(folder_ / "metrics")) {
    const std::string content = read_regular_file(entry.path(), std::uint64_t{1} << 40U);
    std::string kept;
    std::vector<std::string> lines = split(content, '\n');
    lines.pop_back();  // what follows the last line end
    for (const std::string& line : lines) {
      const std::optional<std::int64_t> step = step_of(line);
      if (step && completed > 0 && *step <= completed) {
        kept += line + '\n';
        newest[entry.path().filename().string()] = *step;
      }
    }
    if (kept.empty()) {
      fs::remove(entry.path());  // MLflow refuses an empty one
    } else if (kept != content) {
      write_file_atomic(entry.path(), kept);
    }
  }
  // What waited when a checkpoint was saved may have been written since.
  std::erase_if(waiting_, [&](const Line& line) {
    const auto there = newest.find(line.file);
    return there != newest.end() && line.step <= there->second;
  });
}

void MlflowSink::put(std::int64_t step, double time, const Values& numbers) {
  for (const auto& [name, value] : numbers) {
    waiting_.push_back({metric_file(name), step, format("{} {} {}\n", milliseconds(time), value, step)});
  }
  settle();
  KF_CHECK(waiting_.size() <= kMostWaiting, Code::checkpoint, "{}; {} lines wait for that, more than are kept in memory", fault(),
           waiting_.size());
}

void MlflowSink::settle() {
  const std::size_t late = waiting_.size();
  try {
    if (!begun_) {
      write_head();
      begun_ = true;
    }
    if (cut_) {
      keep(*cut_);
      cut_.reset();
    }
    for (; !waiting_.empty(); waiting_.pop_front()) {
      const Line& line = waiting_.front();
      HeldFile(folder_ / "metrics" / line.file).append(line.text);
      touched_.insert(line.file);
    }
    outage_.over(format("{} is written again; {} lines that waited are in it", folder_, late));
  } catch (const std::exception& e) {
    outage_.failed(e.what(), "its lines wait in memory until it can be written");
  }
}

void MlflowSink::row(const StepRow& row) { put(row.step, row.time, tracked_numbers(row)); }

void MlflowSink::eval(const EvalResult& result) { put(result.step, now(), tracked_numbers(result)); }

void MlflowSink::rewind(std::int64_t step) {
  leave_out(step);
  settle();
}

void MlflowSink::saved(std::int64_t /*step*/, const fs::path& /*checkpoint*/) {
  try {
    for (const std::string& file : touched_) {
      sync_path(folder_ / "metrics" / file);
    }
    touched_.clear();
  } catch (const Error& e) {
    outage_.failed(e.what(), "it is tried again with the next save");
  }
}

void MlflowSink::end(const RunResult& result) {
  settle();
  KF_CHECK(!outage_.is_on(), Code::checkpoint, "{}; {} lines are not in the files", fault(), waiting_.size());
  write_meta(result.status == "complete" ? finished : killed, milliseconds(now()));
}

Node MlflowSink::state() {
  config::Array out;
  for (const Line& line : waiting_) {
    out.emplace_back(config::Array{Node(line.file), Node(line.step), Node(line.text)});
  }
  return out.empty() ? Node() : Node(std::move(out));
}

void MlflowSink::load(const Node& state) {
  KF_CHECK(state.array() != nullptr, Code::checkpoint, "the checkpoint's lines for MLflow are no list");
  for (const Node& node : *state.array()) {
    const config::Array* const three = node.array();
    const bool fits = three != nullptr && three->size() == 3;
    const auto* const file = fits ? std::get_if<std::string>(&(*three)[0].value) : nullptr;
    const auto* const step = fits ? std::get_if<std::int64_t>(&(*three)[1].value) : nullptr;
    const auto* const text = fits ? std::get_if<std::string>(&(*three)[2].value) : nullptr;
    KF_CHECK(file != nullptr && step != nullptr && text != nullptr && *file == file_name(*file) && !file->empty(), Code::checkpoint,
             "the checkpoint has a line for MLflow that is no file, step and text");
    waiting_.push_back({*file, *step, *text});
  }
}

}  // namespace kf
