#include "run/stored_result.h"

#include <optional>
#include <utility>

#include "config/tree/finite.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "metrics/eval_table.h"
#include "metrics/jsonl.h"

namespace kf {
namespace {

using config::JsonStyle;
using config::Node;
using config::Table;

constexpr const char* kFile = "result.json";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;

template <class T>
T value(const Table& table, const char* key) {
  const Node* const node = table.find(key);
  const T* const found = node != nullptr ? std::get_if<T>(&node->value) : nullptr;
  KF_CHECK(found != nullptr, Code::other, "'{}' is missing", key);
  return *found;
}

RunResult read(const fs::path& path) {
  const Node root = config::parse_json(read_regular_file(path, kMostBytes), path.string(), JsonStyle::exact);
  KF_CHECK(root.table() != nullptr, Code::other, "it is no table");
  const Table& table = *root.table();
  RunResult result;
  result.status = value<std::string>(table, "status");
  result.reason = value<std::string>(table, "reason");
  result.step = value<std::int64_t>(table, "steps");
  result.tokens = value<std::int64_t>(table, "tokens");
  result.skipped = table.find("skipped") != nullptr ? value<std::int64_t>(table, "skipped") : 0;  // earlier versions had none
  result.loss = config::real_at(table, "loss");                                                   // null: no step had one
  result.checkpoint = value<std::string>(table, "checkpoint");
  result.seconds = value<double>(table, "seconds");
  return result;
}

/// What result.json says; nothing where it says nothing.
std::optional<RunResult> read_result(const fs::path& run_dir) {
  const fs::path path = run_dir / kFile;
  if (!path_exists(path)) {
    return std::nullopt;
  }
  try {
    return read(path);
  } catch (const Error& error) {
    log::warn("{}: {}; what the checkpoint says is reported instead", path, error.what());
    return std::nullopt;
  }
}

bool is_unsaved_end(const RunResult& told, const CheckpointState& state) {
  return !state.finished && told.status == "complete" && told.step > state.run.step;
}

/// The last evaluation that the checkpoint knows.
std::optional<EvalResult> eval_of(const CheckpointState& state) {
  const Table* const eval = value_at(state.values, kEval).table();
  const Node* const at = eval != nullptr ? eval->find("step") : nullptr;
  const auto* const step = at != nullptr ? std::get_if<std::int64_t>(&at->value) : nullptr;
  return step != nullptr ? std::optional(from_numbers(*eval, *step)) : std::nullopt;
}

/// The end as the checkpoint knows it.
RunResult result_of(const CheckpointState& state, const fs::path& checkpoint) {
  RunResult result;
  const auto* const reason = std::get_if<std::string>(&value_at(state.values, kStop).value);
  result.status = reason != nullptr && state.run.step < state.max_steps ? "stopped" : "complete";
  result.reason = reason != nullptr && result.status == "stopped" ? *reason : "";
  result.step = state.run.step;
  result.tokens = state.run.tokens;
  result.skipped = state.run.skipped;
  result.checkpoint = checkpoint.string();
  return result;
}

void add_history(RunResult& result, const fs::path& rows, bool with_loss) {
  try {
    result.history = read_rows(rows);
  } catch (const Error& error) {
    log::warn("{}; the rows are left out", error.what());
  }
  for (const auto& row : result.history) {
    if (const auto* eval = std::get_if<EvalResult>(&row)) {
      result.eval = *eval;
    } else if (const auto& step = std::get<StepRow>(row); with_loss && step.has_loss) {
      result.loss = step.loss;
    }
  }
}

}  // namespace

bool ended_unsaved(const fs::path& run_dir, const CheckpointState& state) {
  const std::optional<RunResult> told = read_result(run_dir);
  return told && is_unsaved_end(*told, state);
}

void store_result(const RunResult& result, const std::string& id, const fs::path& run_dir) {
  Table table;
  table["id"] = Node(id);
  table["status"] = Node(result.status);
  table["reason"] = Node(result.reason);
  table["steps"] = Node(result.step);
  table["tokens"] = Node(result.tokens);
  table["skipped"] = Node(result.skipped);
  table["loss"] = result.loss ? Node(*result.loss) : Node();
  table["checkpoint"] = Node(result.checkpoint);
  table["seconds"] = Node(result.seconds);
  write_file_atomic(run_dir / kFile, config::to_json(config::with_finite_numbers(Node(std::move(table))), JsonStyle::exact, 1) + "\n");
}

RunResult stored_result(const fs::path& run_dir, const fs::path& checkpoint, const CheckpointState& state, bool with_history) {
  std::optional<RunResult> told = read_result(run_dir);
  // By the counters, not by the name of the checkpoint: the last save may have had another name.
  if (told && (told->step != state.run.step || told->tokens != state.run.tokens) && !is_unsaved_end(*told, state)) {
    told.reset();
  }
  RunResult result = told ? std::move(*told) : result_of(state, checkpoint);
  result.eval = eval_of(state);
  const fs::path rows = run_dir / "metrics.jsonl";
  if (with_history && path_exists(rows)) {
    add_history(result, rows, /*with_loss=*/!told);
  }
  if (!told && !result.loss) {
    log::warn("the loss of {} is not known: {} does not tell how it ended, and {} {}", run_dir, run_dir / kFile, rows,
              path_exists(rows) ? "has no row with a loss" : "is not there");
  }
  return result;
}

}  // namespace kf
