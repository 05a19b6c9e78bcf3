#include "report/read/run_record.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "report/read/json_values.h"

namespace kf::report {
namespace {

using config::Node;
using config::Table;

Start start_of(const Table& table) {
  Start out;
  out.time = text_at(table, "time");
  out.command = text_at(table, "command");
  out.folder = text_at(table, "folder");
  out.host = text_at(table, "host");
  out.device = text_at(table, "device");
  out.step = integer_at(table, "step").value_or(0);
  out.end = text_at(table, "end");
  out.status = text_at(table, "status");
  out.error = text_at(table, "error");
  out.steps = integer_at(table, "steps");
  out.all = table;
  return out;
}

/// A table inside of a table as lines of the environment: {"job_git": {"commit": "1a2b"}} is job_git.commit.
void add_texts(const Table& table, const std::string& prefix, std::vector<std::pair<std::string, std::string>>& out) {
  // Of the course of the start, not of what it ran on.
  constexpr std::array<std::string_view, 10> kCourse{"time",  "command", "folder", "pid",   "step",
                                                     "watch", "end",     "status", "steps", "error"};
  for (const auto& [key, value] : table) {
    if (prefix.empty() && std::find(kCourse.begin(), kCourse.end(), key) != kCourse.end()) {
      continue;
    }
    if (value.table() != nullptr) {
      add_texts(*value.table(), prefix + key + ".", out);
    } else if (!value.is_null()) {
      const auto* const text = std::get_if<std::string>(&value.value);
      out.emplace_back(prefix + key, text != nullptr ? *text : config::to_text(value));
    }
  }
}

}  // namespace

Record read_record(const fs::path& run) {
  Record out;
  out.all = read_object(run / "run.json");
  out.id = text_at(out.all, "id");
  out.name = text_at(out.all, "name");
  out.job = text_at(out.all, "job");
  out.script = text_at(out.all, "script");
  out.tags = texts_at(out.all, "tags");
  out.arguments = texts_at(out.all, "arguments");
  if (const config::Array* const starts = list_at(out.all, "starts")) {
    for (const Node& start : *starts) {
      if (start.table() != nullptr) {
        out.starts.push_back(start_of(*start.table()));
      }
    }
  }
  return out;
}

std::optional<Table> read_result(const fs::path& run) {
  const fs::path file = run / "result.json";
  try {
    return path_exists(file) ? std::optional(read_object(file)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::pair<std::string, std::string>> environment_of(const Start& start) {
  std::vector<std::pair<std::string, std::string>> out;
  add_texts(start.all, "", out);
  return out;
}

std::vector<Sample> samples_of(const fs::path& run) {
  const fs::path file = run / "artifacts" / "samples.json";
  std::vector<Sample> out;
  try {
    const Node root = path_exists(file) ? config::parse_json(read_regular_file(file, kMostJson), file.string()) : Node();
    for (const Node& item : root.array() != nullptr ? *root.array() : config::Array()) {
      const std::optional<std::int64_t> step = item.table() != nullptr ? integer_at(*item.table(), "step") : std::nullopt;
      if (step) {
        out.push_back({*step, text_at(*item.table(), "prompt"), text_at(*item.table(), "text")});
      }
    }
  } catch (const Error&) {
    return out;
  }
  return out;
}

}  // namespace kf::report
