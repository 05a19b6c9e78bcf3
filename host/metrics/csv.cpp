#include "metrics/csv.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <set>
#include <utility>

#include "config/tree/json.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/eval_table.h"
#include "metrics/jsonl.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

constexpr std::size_t kMostWaiting = 100000;  // lines
constexpr const char* kMeanwhile = "its lines wait in memory until it can be written";

/// The step of a line; nothing where it has none.
std::optional<std::int64_t> step_of(const std::vector<std::string>& line) {
  const std::string& text = line.front();
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(step) : std::nullopt;
}

/// The numbers of an evaluation as columns: "eval_loss", and "eval_code_loss" of the set `code`.
void add_eval(Table& line, const Table& numbers, const std::string& prefix) {
  for (const auto& [name, value] : numbers) {
    if (const Table* const set = value.table()) {
      add_eval(line, *set, prefix + name + "_");
    } else {
      line[prefix + name] = value;
    }
  }
}

}  // namespace

CsvSink::~CsvSink() {
  try {
    flush();  // of a run that ends with an error
  } catch (const std::exception& e) {
    log::error("{}", e.what());
  }
}

void CsvSink::begin(const RunInfo& run) { go_on(run.completed_steps); }

void CsvSink::go_on(std::int64_t completed_steps) {
  keep(completed_steps);
  settle();
}

void CsvSink::rewind(std::int64_t step) {
  flush();
  cut_ = std::min(step, cut_.value_or(step));
  settle();
}

void CsvSink::keep(std::int64_t completed_steps) {
  std::string kept;
  std::vector<std::string> columns;
  std::set<std::int64_t> there;
  if (completed_steps > 0 && path_exists(path_)) {
    for (std::vector<std::string>& line : csv_lines(read_file(path_))) {
      if (columns.empty()) {
        kept += csv_line(line);
        columns = std::move(line);
      } else if (const std::optional<std::int64_t> step = step_of(line); step && *step <= completed_steps) {
        line.resize(columns.size());
        kept += csv_line(line);
        there.insert(*step);
      }
    }
  }
  write_file_atomic(path_, kept);
  HeldFile opened(path_);
  file_ = std::move(opened);
  columns_ = std::move(columns);
  // What waited when a checkpoint was saved may have been written since; what is of later steps comes again.
  std::erase_if(waiting_, [&](const Table& line) {
    const auto* const step = std::get_if<std::int64_t>(&line.find("step")->value);
    return step == nullptr || *step > completed_steps || completed_steps == 0 || there.contains(*step);
  });
}

/// What comes for another step than the one before ends its line.
void CsvSink::to_line(std::int64_t step) {
  if (!pending_.empty() && !(pending_["step"] == Node(step))) {
    flush();
  }
  pending_["step"] = Node(step);
}

void CsvSink::row(const StepRow& row) {
  const Table table = to_table(row);  // throws before anything is kept
  to_line(row.step);
  for (const auto& [name, value] : table) {
    pending_[name] = value;
  }
}

void CsvSink::eval(const EvalResult& result) {
  to_line(result.step);
  add_eval(pending_, to_numbers(result), "eval_");
}

void CsvSink::step_over(std::int64_t /*step*/) { flush(); }

void CsvSink::end(const RunResult& /*result*/) {
  flush();
  if (path_exists(path_.parent_path())) {  // else the save has said it
    before_save();
  }
  if (outage_.is_on()) {
    settle();
  }
  KF_CHECK(!outage_.is_on(), Code::checkpoint, "{}; {} lines are not in the file{}", outage_.reason(), waiting_.size(),
           waiting_.empty() ? "" : ", but in the last checkpoint: when it can be written, the same command adds them");
}

/// Columns that the line has and the file has not; the lines before get empty cells.
void CsvSink::add_columns(const Table& line) {
  std::vector<std::string> columns = columns_;
  for (const auto& [name, value] : line) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
      columns.push_back(name);
    }
  }
  if (columns.size() == columns_.size()) {
    return;
  }
  mend(*file_);
  std::vector<std::vector<std::string>> lines = csv_lines(read_file(path_));
  std::string text = csv_line(columns);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    lines[i].resize(columns.size());
    text += csv_line(lines[i]);
  }
  write_file_atomic(path_, text);
  HeldFile opened(path_);
  file_ = std::move(opened);
  columns_ = std::move(columns);
}

void CsvSink::before_save() {
  try {
    mend(*file_);
  } catch (const std::exception& e) {
    outage_.failed(e.what(), kMeanwhile);
  }
}

void CsvSink::flush() {
  if (pending_.empty()) {
    return;
  }
  waiting_.push_back(std::exchange(pending_, {}));
  settle();
  KF_CHECK(waiting_.size() <= kMostWaiting, Code::checkpoint, "{}; {} lines wait for that, more than are kept in memory", outage_.reason(),
           waiting_.size());
}

/// Writes what waits, as far as the disk takes it.
void CsvSink::settle() {
  if (!file_ || !path_exists(path_.parent_path())) {
    return;  // a folder that is gone is the next save's to tell
  }
  const bool was_on = outage_.is_on();
  const std::size_t late = waiting_.size();
  try {
    if (was_on || cut_) {
      mend(*file_);
    }
    if (cut_) {
      keep(*cut_);  // the lines are read from the file
      cut_.reset();
    }
    for (; !waiting_.empty(); waiting_.pop_front()) {
      add_columns(waiting_.front());
      std::vector<std::string> cells;
      for (const std::string& column : columns_) {
        const Node* const value = waiting_.front().find(column);
        cells.push_back(value != nullptr ? config::to_cell(*value) : "");
      }
      file_->append(csv_line(cells));
    }
    outage_.over(format("{} is written again; {} lines that waited are in it", path_, late));
  } catch (const std::exception& e) {
    outage_.failed(e.what(), kMeanwhile);
  }
}

Node CsvSink::state() {
  config::Array lines;
  for (const Table& line : waiting_) {
    lines.emplace_back(line);
  }
  if (outage_.is_on() && !pending_.empty()) {
    lines.emplace_back(pending_);
  }
  return lines.empty() ? Node() : Node(std::move(lines));
}

void CsvSink::load(const Node& state) {
  KF_CHECK(state.array() != nullptr, Code::checkpoint, "the checkpoint's lines for {} are no list", path_);
  for (const Node& line : *state.array()) {
    KF_CHECK(line.table() != nullptr && line.table()->find("step") != nullptr, Code::checkpoint,
             "the checkpoint has a line for {} without a step", path_);
    waiting_.push_back(*line.table());
  }
}

}  // namespace kf
