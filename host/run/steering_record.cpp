#include "run/steering_record.h"

#include <utility>

#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "core/plain_file.h"
#include "run/run_folders.h"
#include "run/run_record.h"

namespace kf {
namespace {

using config::JsonStyle;
using config::Node;
using config::Table;

constexpr std::uint64_t kMostFile = std::uint64_t{1} << 30U;

/// Whole lines; what a killed process has not written to its end is none.
std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines = split(read_regular_file(path, kMostFile), '\n');
  lines.pop_back();
  return lines;
}

Steered entry_of(const std::string& line, const std::string& where) {
  const Node node = config::parse_json(line, where, JsonStyle::exact);
  const Table* const table = node.table();
  const Node* const step = table != nullptr ? table->find("step") : nullptr;
  const Node* const reload = table != nullptr ? table->find("reload") : nullptr;
  const Node* const chunk = table != nullptr ? table->find(reload != nullptr ? "reload" : "chunk") : nullptr;
  const auto* const number = step != nullptr ? std::get_if<std::int64_t>(&step->value) : nullptr;
  const auto* const text = chunk != nullptr ? std::get_if<std::string>(&chunk->value) : nullptr;
  KF_CHECK(number != nullptr && *number >= 0 && text != nullptr, Code::config,
           "{}: an entry has a step and a chunk or a reload, this is none: {}", where, line.substr(0, 200));
  return {*number, {reload != nullptr ? RunMessage::Kind::reload : RunMessage::Kind::chunk, *text, 0}};
}

}  // namespace

std::vector<Steered> read_steering(const fs::path& path) {
  KF_CHECK(path_exists(path), Code::config, "run.steering: there is no file {}", path);
  std::vector<Steered> out;
  for (const std::string& line : lines_of(path)) {
    out.push_back(entry_of(line, format("{}:{}", path, out.size() + 1)));
  }
  return out;
}

SteeringRecord::SteeringRecord(fs::path path, std::optional<std::int64_t> kept) : path_(std::move(path)) {
  if (!kept) {
    keep_old_rows(path_);
    return;
  }
  const auto wanted = static_cast<std::size_t>(*kept);
  const std::vector<std::string> lines = path_exists(path_) ? lines_of(path_) : std::vector<std::string>();
  if (lines.size() < wanted) {
    log::warn("{} has {} of the {} entries that the checkpoint tells of: a run that repeats them will be another one", path_, lines.size(),
              wanted);
    return;
  }
  std::string content;
  for (std::size_t i = 0; i < wanted; ++i) {
    content += lines[i] + '\n';
  }
  if (path_exists(path_) && content != read_file(path_)) {
    write_file_atomic(path_, content);
    log::info("{}: removed what was said behind steps that are run again", path_);
  }
}

void SteeringRecord::add(const Steered& entry) {
  Table row;
  row["step"] = Node(entry.step);
  row["time"] = Node(utc_now());
  row[entry.said.kind == RunMessage::Kind::reload ? "reload" : "chunk"] = Node(entry.said.text);
  if (!file_) {
    file_.emplace(path_);
  }
  mend(*file_);
  file_->append(config::to_json(Node(std::move(row)), JsonStyle::exact) + '\n');
  file_->sync();
}

}  // namespace kf
