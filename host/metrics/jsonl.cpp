#include "metrics/jsonl.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/eval_table.h"

namespace kf {
namespace {

using config::Node;
using config::real_at;
using config::Table;
using config::with_finite_numbers;

std::int64_t integer_at(const Table& table, const std::string& key) {
  const auto* const integer = std::get_if<std::int64_t>(&table.find(key)->value);  // not through a double, which has 53 bits
  return integer != nullptr ? *integer : static_cast<std::int64_t>(real_at(table, key).value_or(0));
}

/// The means over the labels of a step.
constexpr std::string_view kOfLoss[] = {"loss", "grad_norm", "ce", "z_loss", "aux_loss"};

bool is_of_loss(const std::string& name) { return std::find(std::begin(kOfLoss), std::end(kOfLoss), name) != std::end(kOfLoss); }

/// Whether the row is of a step without a label: all of its means are null, and not_finite says nothing of them.
bool has_no_label(const Table& table) {
  return std::all_of(std::begin(kOfLoss), std::end(kOfLoss), [&table](std::string_view name) {
    const Node* const node = table.find(name);
    return node != nullptr && node->is_null() && !real_at(table, name);
  });
}

/// Throws Code::other where a row has something else than numbers.
StepRow step_row(const Table& table) {
  StepRow row;
  row.has_loss = !has_no_label(table);
  const std::pair<const char*, double*> reals[] = {{"loss", &row.loss},     {"grad_norm", &row.grad_norm},
                                                   {"lr", &row.lr},         {"tokens_per_sec", &row.tokens_per_sec},
                                                   {"mfu", &row.mfu},       {"ce", &row.ce},
                                                   {"z_loss", &row.z_loss}, {"aux_loss", &row.aux_loss},
                                                   {"time", &row.time},     {"seconds", &row.seconds}};
  const std::pair<const char*, std::int64_t*> integers[] = {
      {"step", &row.step}, {"tokens", &row.tokens}, {"memory_bytes", &row.memory_bytes}, {"skipped", &row.skipped}};
  for (const auto& [name, node] : table) {
    if (name == "not_finite") {
      continue;
    }
    const std::optional<double> value = real_at(table, name);
    if (!row.has_loss && is_of_loss(name)) {
      continue;
    }
    KF_CHECK(value.has_value(), Code::other, "'{}' is no number", name);
    const auto is_it = [&name = name](const auto& entry) { return name == entry.first; };
    if (const auto* const real = std::find_if(std::begin(reals), std::end(reals), is_it); real != std::end(reals)) {
      *real->second = *value;
    } else if (const auto* const whole = std::find_if(std::begin(integers), std::end(integers), is_it); whole != std::end(integers)) {
      *whole->second = integer_at(table, name);
    } else {
      row.extra.emplace_back(name, *value);
    }
  }
  return row;
}

using MetricRow = std::variant<StepRow, EvalResult>;

/// One line of the file; nothing where it is no row, as a file can say that was edited or damaged.
std::optional<MetricRow> row_of(const std::string& line, const fs::path& path) {
  try {
    const Node row = config::parse_json(line, path.string());
    const Table* const table = row.table();
    const Node* const step = table != nullptr ? table->find("step") : nullptr;
    const std::int64_t* const number = step != nullptr ? std::get_if<std::int64_t>(&step->value) : nullptr;
    if (number == nullptr || *number < 0) {
      return std::nullopt;
    }
    const Node* const eval = table->find("eval");
    return eval != nullptr && eval->table() != nullptr ? MetricRow(from_numbers(*eval->table(), *number)) : MetricRow(step_row(*table));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::int64_t step_of(const MetricRow& row) {
  return std::visit([](const auto& one) { return one.step; }, row);
}

/// What is to stay of an earlier part of the run.
std::string kept_rows(const std::string& content, const fs::path& path, std::int64_t completed) {
  std::string kept;
  std::int64_t removed = 0;
  const std::vector<std::string> lines = split(content, '\n');  // the last one is what follows the last newline
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    if (last && lines[i].empty()) {
      continue;
    }
    const std::optional<MetricRow> row = last ? std::nullopt : row_of(lines[i], path);
    if (!row) {
      log::warn("{}:{}: dropped {}", path, i + 1, last ? "a row that was not written to its end" : "a line that is no row");
    } else if (step_of(*row) > completed || completed == 0) {
      ++removed;
    } else {
      kept += lines[i] + '\n';
    }
  }
  if (removed > 0) {
    log::info("{}: removed {} rows of steps after {}, which are run again", path, removed, completed);
  }
  return kept;
}

}  // namespace

/// Key by key, as they stand in the header of this file. What hooks add comes last; a later value of a name replaces the earlier one.
Table to_table(const StepRow& row) {
  const auto of_loss = [&row](double value) { return row.has_loss ? Node(value) : Node(); };
  Table table;
  table["step"] = Node(row.step);
  table["loss"] = of_loss(row.loss);
  table["grad_norm"] = of_loss(row.grad_norm);
  table["lr"] = Node(row.lr);
  table["tokens"] = Node(row.tokens);
  table["tokens_per_sec"] = Node(row.tokens_per_sec);
  table["mfu"] = Node(row.mfu);
  table["memory_bytes"] = Node(row.memory_bytes);
  table["seconds"] = Node(row.seconds);
  table["time"] = Node(row.time);
  table["skipped"] = Node(row.skipped);
  table["ce"] = of_loss(row.ce);
  table["z_loss"] = of_loss(row.z_loss);
  table["aux_loss"] = of_loss(row.aux_loss);
  const Table own = table;
  for (const auto& [name, value] : row.extra) {
    // "eval" marks the other kind of row.
    KF_CHECK(own.find(name) == nullptr && name != "eval" && name != "not_finite", Code::script,
             "a hook logs '{}', which is a key of every row in metrics.jsonl; choose another name", name);
    table[name] = Node(value);
  }
  return table;
}

namespace {

/// Whether metrics.csv has a column of this name for an evaluation: eval_loss, and eval_NAME_loss of a set.
bool is_eval_column(const std::string& name) {
  constexpr std::array<std::string_view, 5> kNumbers{"_loss", "_perplexity", "_tokens", "_bits_per_byte", "_accuracy"};
  return name.starts_with("eval_") &&
         std::any_of(kNumbers.begin(), kNumbers.end(), [&](std::string_view number) { return name.ends_with(number); });
}

/// Numbers that the program adds to some rows.
bool is_added(const std::string& name) {
  static const std::set<std::string> kNames{
      "mtp_loss",     "data_wait",         "goodput",      "step_seconds",       "step_seconds_deviation", "step_seconds_max",
      "moe/aux_loss", "moe/router_z_loss", "moe/max_load", "moe/expert_balance", "moe/load_entropy",       "moe/dropped"};
  return kNames.contains(name) || name.starts_with("time/") || name.starts_with("watch/") || name.starts_with("loss_fn/");
}

}  // namespace

bool is_row_key(const std::string& name) {
  static const Table own = to_table(StepRow());
  return own.find(name) != nullptr || name == "eval" || name == "not_finite" || is_eval_column(name) || is_added(name);
}

Table to_table(const EvalResult& result) {
  Table row;
  row["step"] = Node(result.step);
  row["eval"] = Node(to_numbers(result));
  return row;
}

std::vector<std::variant<StepRow, EvalResult>> read_rows(const fs::path& path) {
  std::vector<std::variant<StepRow, EvalResult>> out;
  for (const std::string& line : split(read_regular_file(path, std::numeric_limits<std::uint64_t>::max()), '\n')) {
    if (line.empty()) {
      continue;
    }
    std::optional<MetricRow> row = row_of(line, path);
    KF_CHECK(row.has_value(), Code::other, "{}: a line is no row: {}", path, line);
    out.push_back(std::move(*row));
  }
  return out;
}

JsonlSink::JsonlSink(fs::path path, std::int64_t completed_steps) : path_(std::move(path)) { open(completed_steps); }

void JsonlSink::open(std::int64_t completed_steps) {
  if (path_exists(path_)) {
    const std::string fault = unlike_a_file(path_);
    KF_CHECK(fault.empty(), Code::other, "cannot read {}: {}", path_, fault);
    const std::string content = read_file(path_);
    const std::string kept = kept_rows(content, path_, completed_steps);
    if (kept != content) {
      write_file_atomic(path_, kept);
    }
  }
  file_.emplace(path_);
}

void JsonlSink::rewind(std::int64_t step) {
  before_save();  // the rows are read from the file
  file_.reset();
  open(step);
}

void JsonlSink::before_save() {
  if (const std::string said = file_->mend(); !said.empty()) {
    log::warn("{}", said);
  }
}

void JsonlSink::close() {
  if (path_exists(path_.parent_path())) {  // else the save has said it
    before_save();
  }
}

void JsonlSink::step(const StepRow& row) { file_->append(config::to_json(with_finite_numbers(Node(to_table(row)))) + '\n'); }

void JsonlSink::eval(const EvalResult& result) { file_->append(config::to_json(with_finite_numbers(Node(to_table(result)))) + '\n'); }

void JsonlSink::saved(std::int64_t /*step*/, const std::string& /*path*/) { file_->sync(); }

}  // namespace kf
