#include "metrics/tracker/job_settings.h"

#include <optional>

#include "config/load/toml.h"
#include "config/tree/json.h"

namespace kf {
namespace {

using config::Node;
using config::Table;

void add_leaves(std::vector<std::pair<std::string, Node>>& out, const Table& table, const std::string& prefix) {
  for (const auto& [name, node] : table) {
    if (const Table* const section = node.table()) {
      add_leaves(out, *section, prefix + name + ".");
    } else if (node.array() != nullptr) {
      out.emplace_back(prefix + name, Node(config::to_json(node, config::JsonStyle::exact)));
    } else if (!node.is_null()) {
      out.emplace_back(prefix + name, Node(node.value));
    }
  }
}

}  // namespace

Table job_settings(const RunInfo& run) {
  config::Report report;
  return config::parse_toml(run.job_toml, "job.toml", config::Origin::Kind::toml, report).value_or(Table());
}

std::vector<std::pair<std::string, Node>> setting_leaves(const Table& settings) {
  std::vector<std::pair<std::string, Node>> out;
  add_leaves(out, settings, "");
  return out;
}

}  // namespace kf
