#include "app/stored_result.h"

#include "config/json.h"
#include "core/error.h"
#include "core/log.h"
#include "metrics/jsonl.h"

namespace kf {
namespace {

using config::JsonStyle;
using config::Node;
using config::Table;

constexpr const char* kFile = "result.json";

template <class T>
T value(const Table& table, const char* key) {
  const Node* const node = table.find(key);
  const T* const found = node != nullptr ? std::get_if<T>(&node->value) : nullptr;
  KF_CHECK(found != nullptr, Code::other, "'{}' is missing", key);
  return *found;
}

RunResult read(const fs::path& path) {
  const Node root = config::parse_json(read_file(path), path.string(), JsonStyle::exact);
  KF_CHECK(root.table() != nullptr, Code::other, "it is no table");
  const Table& table = *root.table();
  RunResult result;
  result.status = value<std::string>(table, "status");
  result.reason = value<std::string>(table, "reason");
  result.step = value<std::int64_t>(table, "steps");
  result.tokens = value<std::int64_t>(table, "tokens");
  if (const Node* const loss = table.find("loss"); loss != nullptr && !loss->is_null()) {
    result.loss = value<double>(table, "loss");
  }
  if (table.find("skipped") != nullptr) {  // results of earlier versions have none
    result.skipped = value<std::int64_t>(table, "skipped");
  }
  result.checkpoint = value<std::string>(table, "checkpoint");
  result.seconds = value<double>(table, "seconds");
  return result;
}

}  // namespace

void store_result(const RunResult& result, const fs::path& run_dir) {
  Table table;
  table["status"] = Node(result.status);
  table["reason"] = Node(result.reason);
  table["steps"] = Node(result.step);
  table["tokens"] = Node(result.tokens);
  table["loss"] = result.loss ? Node(*result.loss) : Node();
  table["skipped"] = Node(result.skipped);
  table["checkpoint"] = Node(result.checkpoint);
  table["seconds"] = Node(result.seconds);
  write_file_atomic(run_dir / kFile, config::to_json(Node(std::move(table)), JsonStyle::exact, 1) + "\n");
}

std::optional<RunResult> stored_result(const fs::path& run_dir, const fs::path& checkpoint) {
  const fs::path path = run_dir / kFile;
  if (!fs::exists(path) || !fs::exists(run_dir / "metrics.jsonl")) {
    return std::nullopt;
  }
  try {
    RunResult result = read(path);
    if (fs::path(result.checkpoint).filename() != checkpoint.filename()) {
      return std::nullopt;  // of an earlier end of the run
    }
    result.history = read_rows(run_dir / "metrics.jsonl");
    for (const auto& row : result.history) {
      if (const auto* eval = std::get_if<EvalResult>(&row)) {
        result.eval = *eval;
      }
    }
    return result;
  } catch (const Error& error) {
    log::warn("{}: {}; what the checkpoint says is reported instead", path, error.what());
    return std::nullopt;
  }
}

}  // namespace kf
