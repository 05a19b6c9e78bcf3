#include "metrics/jsonl.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/eval_table.h"
#include "metrics/names/names.h"

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

/// Whether the row is of a step without a label: all of its means are null, and not_finite says nothing of them.
bool has_no_label(const Table& table) {
  const std::span<const NumberRow> rows = number_rows();
  return std::all_of(rows.begin(), rows.end(), [&table](const NumberRow& row) {
    const Node* const node = table.find(row.name);
    return row.kind != NumberRow::Kind::mean || (node != nullptr && node->is_null() && !real_at(table, row.name));
  });
}

/// Throws Code::other where a row has something else than numbers.
StepRow step_row(const Table& table) {
  StepRow row;
  row.has_loss = !has_no_label(table);
  each_number(row, [&](const char* name, bool mean, auto& number) {
    if (table.find(name) == nullptr || (mean && !row.has_loss)) {
      return;
    }
    const std::optional<double> value = real_at(table, name);
    KF_CHECK(value.has_value(), Code::other, "'{}' is no number", name);
    if constexpr (std::is_same_v<decltype(number), double&>) {
      number = *value;
    } else {
      number = integer_at(table, name);
    }
  });
  for (const auto& [name, node] : table) {
    if (name != "not_finite" && !is_in_every_row(name)) {
      const std::optional<double> value = real_at(table, name);
      KF_CHECK(value.has_value(), Code::other, "'{}' is no number", name);
      row.extra.emplace_back(name, *value);
    }
  }
  return row;
}

constexpr std::size_t kMostWaiting = std::size_t{64} << 20U;  // bytes

using MetricRow = std::variant<StepRow, EvalResult>;

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
    const std::optional<MetricRow> row = last ? std::nullopt : parse_row(lines[i], path);
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

/// What hooks add comes last; a later value of a name replaces the earlier one.
Table to_table(const StepRow& row) {
  Table table;
  each_number(row, [&](const char* name, bool mean, auto value) { table[name] = mean && !row.has_loss ? Node() : Node(value); });
  for (const auto& [name, value] : row.extra) {
    // "eval" marks the other kind of row.
    KF_CHECK(!is_in_every_row(name) && name != "eval" && name != "not_finite", Code::script,
             "a hook logs '{}', which is a key of every row in metrics.jsonl; choose another name", name);
    table[name] = Node(value);
  }
  return table;
}

Table to_table(const EvalResult& result) {
  Table row;
  row["step"] = Node(result.step);
  row["eval"] = Node(to_numbers(result));
  return row;
}

std::optional<MetricRow> parse_row(const std::string& line, const fs::path& path) {
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

std::vector<std::variant<StepRow, EvalResult>> read_rows(const fs::path& path) {
  std::vector<std::variant<StepRow, EvalResult>> out;
  for (const std::string& line : split(read_regular_file(path, std::numeric_limits<std::uint64_t>::max()), '\n')) {
    if (line.empty()) {
      continue;
    }
    std::optional<MetricRow> row = parse_row(line, path);
    KF_CHECK(row.has_value(), Code::other, "{}: a line is no row: {}", path, line);
    out.push_back(std::move(*row));
  }
  return out;
}

void JsonlSink::begin(const RunInfo& run) { go_on(run.completed_steps); }

void JsonlSink::go_on(std::int64_t completed_steps) {
  leave_out(completed_steps);
  open(completed_steps);
  settle();
}

void JsonlSink::open(std::int64_t completed_steps) {
  std::set<std::string> there;
  if (path_exists(late_.path())) {
    const std::string fault = unlike_a_file(late_.path());
    KF_CHECK(fault.empty(), Code::other, "cannot read {}: {}", late_.path(), fault);
    const std::string content = read_file(late_.path());
    const std::string kept = kept_rows(content, late_.path(), completed_steps);
    if (kept != content) {
      write_file_atomic(late_.path(), kept);
    }
    if (!late_.waiting().empty()) {
      for (std::string& line : split(kept, '\n')) {
        there.insert(std::move(line) + '\n');
      }
    }
  }
  HeldFile opened(late_.path());
  file_ = std::move(opened);
  // What waited when a checkpoint was saved may have been written since.
  std::erase_if(late_.waiting(), [&](const std::string& line) { return there.contains(line); });
  count_bytes();
}

void JsonlSink::leave_out(std::int64_t step) {
  late_.leave_out(step, [this](const std::string& line) {
    const std::optional<MetricRow> row = parse_row(line.substr(0, line.size() - 1), late_.path());
    return row ? step_of(*row) : std::numeric_limits<std::int64_t>::max();
  });
  count_bytes();
}

void JsonlSink::count_bytes() {
  bytes_ = std::transform_reduce(late_.waiting().begin(), late_.waiting().end(), std::size_t{0}, std::plus<>(),
                                 [](const auto& line) { return line.size(); });
}

void JsonlSink::rewind(std::int64_t step) {
  leave_out(step);
  late_.cut(step);
  settle();
}

void JsonlSink::settle() {
  late_.settle(
      file_, [this](std::int64_t step) { open(step); },
      [this](const std::string& line) {
        file_->append(line);
        bytes_ -= line.size();
      });
}

void JsonlSink::put(const Table& row) {
  late_.waiting().push_back(config::to_json(with_finite_numbers(Node(row))) + '\n');
  bytes_ += late_.waiting().back().size();
  settle();
  late_.check_room(bytes_ <= kMostWaiting, format("{} rows of {} MiB", late_.waiting().size(), bytes_ >> 20U));
}

void JsonlSink::before_save() { late_.before_save(file_); }

void JsonlSink::end(const RunResult& /*result*/) {
  if (path_exists(late_.path().parent_path())) {  // else the save has said it
    before_save();
  }
  if (late_.is_on()) {
    settle();
  }
  late_.check_end();
}

void JsonlSink::row(const StepRow& row) { put(to_table(row)); }

void JsonlSink::eval(const EvalResult& result) { put(to_table(result)); }

void JsonlSink::saved(std::int64_t /*step*/, const fs::path& /*checkpoint*/) { late_.sync(file_); }

Node JsonlSink::state() { return late_.waiting().empty() ? Node() : Node(config::Array(late_.waiting().begin(), late_.waiting().end())); }

void JsonlSink::load(const Node& state) {
  KF_CHECK(state.array() != nullptr, Code::checkpoint, "the checkpoint's rows for {} are no list", late_.path());
  for (const Node& line : *state.array()) {
    const auto* const text = std::get_if<std::string>(&line.value);
    KF_CHECK(text != nullptr && text->ends_with('\n'), Code::checkpoint, "the checkpoint has a row for {} that is no line", late_.path());
    late_.waiting().push_back(*text);
  }
}

}  // namespace kf
