#include "metrics/csv.h"

#include <algorithm>
#include <charconv>
#include <exception>
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

void CsvSink::begin(const RunInfo& run) { keep(run.completed_steps); }

void CsvSink::rewind(std::int64_t step) {
  flush();
  before_save();  // the lines are read from the file
  keep(step);
}

void CsvSink::keep(std::int64_t completed_steps) {
  std::string kept;
  columns_.clear();
  if (completed_steps > 0 && path_exists(path_)) {
    for (std::vector<std::string>& line : csv_lines(read_file(path_))) {
      if (columns_.empty()) {
        kept += csv_line(line);
        columns_ = std::move(line);
      } else if (const std::optional<std::int64_t> step = step_of(line); step && *step <= completed_steps) {
        line.resize(columns_.size());
        kept += csv_line(line);
      }
    }
  }
  write_file_atomic(path_, kept);
  file_.emplace(path_);
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
}

/// Columns that the pending line has and the file has not; the lines before get empty cells.
void CsvSink::add_columns() {
  const std::size_t known = columns_.size();
  for (const auto& [name, value] : pending_) {
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) {
      columns_.push_back(name);
    }
  }
  if (columns_.size() == known) {
    return;
  }
  before_save();
  std::vector<std::vector<std::string>> lines = csv_lines(read_file(path_));
  std::string text = csv_line(columns_);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    lines[i].resize(columns_.size());
    text += csv_line(lines[i]);
  }
  write_file_atomic(path_, text);
  file_.emplace(path_);
}

void CsvSink::before_save() { mend(*file_); }

void CsvSink::flush() {
  // A folder that is gone is the next save's to tell: it ends the run.
  if (pending_.empty() || !path_exists(path_.parent_path())) {
    return;
  }
  add_columns();
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const Node* const value = pending_.find(column);
    cells.push_back(value != nullptr ? config::to_cell(*value) : "");
  }
  pending_ = {};
  file_->append(csv_line(cells));
}

}  // namespace kf
