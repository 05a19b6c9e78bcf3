#include "config/plan/sinks.h"

#include <algorithm>

namespace kf::config {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> sink_list(const MetricsConfig& metrics) {
  const std::vector<std::string> standard = MetricsConfig().sinks;
  const bool whole = std::any_of(standard.begin(), standard.end(), [&](const std::string& name) { return has(metrics.sinks, name); });
  std::vector<std::string> wanted = whole ? std::vector<std::string>() : standard;
  wanted.insert(wanted.end(), metrics.sinks.begin(), metrics.sinks.end());
  if (metrics.enable_wandb) {
    wanted.emplace_back("wandb");
  }
  if (metrics.enable_tensorboard) {
    wanted.emplace_back("tensorboard");
  }
  if (metrics.prometheus_port > 0) {
    wanted.emplace_back("prometheus");
  }
  std::vector<std::string> list;
  for (const std::string& name : wanted) {
    if (!has(list, name)) {
      list.push_back(name);
    }
  }
  return list;
}

std::int64_t histogram_interval(const MetricsConfig& metrics) {
  const std::vector<std::string> sinks = sink_list(metrics);
  return has(sinks, "tensorboard") || has(sinks, "wandb") ? metrics.histogram_interval : 0;
}

std::vector<std::string> missing_sinks(const std::vector<std::string>& sinks) {
  std::vector<std::string> lines;
  if (!has(sinks, "console")) {
    lines.emplace_back("metrics.sinks leaves out \"console\": the terminal and log.txt get no rows, the terminal no progress");
  }
  if (!has(sinks, "jsonl")) {
    lines.emplace_back(
        "metrics.sinks leaves out \"jsonl\": there is no metrics.jsonl, a result's history is empty, and `seconds` of rows begins anew "
        "with "
        "each start");
  }
  return lines;
}

}  // namespace kf::config
