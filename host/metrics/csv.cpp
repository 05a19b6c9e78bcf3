#include "metrics/csv.h"

#include <fstream>

#include "config/json.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/jsonl.h"

namespace kf {
namespace {

/// The step of a line; -1 where it has none.
std::int64_t step_of(const std::string& line) {
  try {
    return std::stoll(line.substr(0, line.find(',')));
  } catch (const std::exception&) {
    return -1;
  }
}

std::string cell(const config::Node& value) {
  const auto* text = std::get_if<std::string>(&value.value);
  return text != nullptr ? *text : config::to_json(value);
}

}  // namespace

CsvSink::CsvSink(fs::path path, std::int64_t completed_steps) : path_(std::move(path)) { keep(completed_steps); }

void CsvSink::rewind(std::int64_t step) { keep(step); }

void CsvSink::keep(std::int64_t completed_steps) {
  std::string kept;
  columns_.clear();
  if (completed_steps > 0 && fs::exists(path_)) {
    for (const std::string& line : split(read_file(path_), '\n')) {
      if (columns_.empty()) {
        columns_ = split(line, ',');
      } else if (step_of(line) < 0 || step_of(line) > completed_steps) {
        continue;
      }
      kept += line + '\n';
    }
  }
  write_file_atomic(path_, kept);
}

void CsvSink::step(const StepRow& row) {
  config::Table table = to_table(row);
  table["eval_loss"] = eval_ ? config::Node(*eval_) : config::Node(std::string());
  eval_.reset();
  std::string text;
  if (columns_.empty()) {
    for (const auto& [name, value] : table) {
      columns_.push_back(name);
    }
    text = join(columns_, ",") + '\n';
  }
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const config::Node* const value = table.find(column);
    cells.push_back(value != nullptr ? cell(*value) : "");
  }
  std::ofstream out(path_, std::ios::app);
  out << text << join(cells, ",") << '\n' << std::flush;
  KF_CHECK(out.good(), Code::other, "cannot write {}", path_);
}

}  // namespace kf
