#include "metrics/csv.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
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

/// The step of a line; nothing where it has none.
std::optional<std::int64_t> step_of(const std::vector<std::string>& line) {
  const std::string& text = line.front();
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(step) : std::nullopt;
}

std::int64_t step_of(const Table& line) {
  const auto* const step = std::get_if<std::int64_t>(&line.find("step")->value);
  return step != nullptr ? *step : std::numeric_limits<std::int64_t>::max();
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
  leave_out(completed_steps);
  keep(completed_steps);
  settle();
}

void CsvSink::rewind(std::int64_t step) {
  flush();
  leave_out(step);
  late_.cut(step);
  settle();
}

void CsvSink::keep(std::int64_t completed_steps) {
  std::string kept;
  std::vector<std::string> columns;
  std::set<std::int64_t> there;
  if (completed_steps > 0 && path_exists(late_.path())) {
    for (std::vector<std::string>& line : csv_lines(read_file(late_.path()))) {
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
  write_file_atomic(late_.path(), kept);
  HeldFile opened(late_.path());
  file_ = std::move(opened);
  columns_ = std::move(columns);
  // What waited when a checkpoint was saved may have been written since.
  std::erase_if(late_.waiting(), [&](const Table& line) { return there.contains(step_of(line)); });
}

void CsvSink::leave_out(std::int64_t step) {
  late_.leave_out(step, [](const Table& line) { return step_of(line); });
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
  if (path_exists(late_.path().parent_path())) {  // else the save has said it
    before_save();
  }
  if (late_.is_on()) {
    settle();
  }
  late_.check_end();
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
  std::vector<std::vector<std::string>> lines = csv_lines(read_file(late_.path()));
  std::string text = csv_line(columns);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    lines[i].resize(columns.size());
    text += csv_line(lines[i]);
  }
  write_file_atomic(late_.path(), text);
  HeldFile opened(late_.path());
  file_ = std::move(opened);
  columns_ = std::move(columns);
}

void CsvSink::before_save() { late_.before_save(file_); }

void CsvSink::flush() {
  if (pending_.empty()) {
    return;
  }
  late_.waiting().push_back(std::exchange(pending_, {}));
  settle();
  late_.check_room(late_.waiting().size() <= kMostWaiting, format("{} lines", late_.waiting().size()));
}

void CsvSink::append(const Table& line) {
  add_columns(line);
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const Node* const value = line.find(column);
    cells.push_back(value != nullptr ? config::to_cell(*value) : "");
  }
  file_->append(csv_line(cells));
}

void CsvSink::settle() {
  if (file_ && path_exists(late_.path().parent_path())) {  // a folder that is gone is the next save's to tell
    late_.settle(
        file_, [this](std::int64_t step) { keep(step); }, [this](const Table& line) { append(line); });
  }
}

Node CsvSink::state() {
  config::Array lines;
  for (const Table& line : late_.waiting()) {
    lines.emplace_back(line);
  }
  if (late_.is_on() && !pending_.empty()) {
    lines.emplace_back(pending_);
  }
  return lines.empty() ? Node() : Node(std::move(lines));
}

void CsvSink::load(const Node& state) {
  KF_CHECK(state.array() != nullptr, Code::checkpoint, "the checkpoint's lines for {} are no list", late_.path());
  for (const Node& line : *state.array()) {
    KF_CHECK(line.table() != nullptr && line.table()->find("step") != nullptr, Code::checkpoint,
             "the checkpoint has a line for {} without a step", late_.path());
    late_.waiting().push_back(*line.table());
  }
}

}  // namespace kf
