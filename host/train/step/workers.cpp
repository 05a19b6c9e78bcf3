#include "train/step/workers.h"

#include <map>
#include <string>
#include <vector>

#include "config/tree/json.h"
#include "core/text.h"

namespace kf {
namespace {

constexpr const char* kTokens = "tokens";
constexpr const char* kCounted = "counted";
constexpr const char* kAbort = "abort";

/// Calls visit(name, number) for each that is a mean over labels.
template <class Visit>
void each_mean(StepResult& result, const Visit& visit) {
#define MEAN(name, unit, doc) visit(#name, result.name);
#include "metrics/names/names.def"
  for (auto& [name, number] : result.extra) {
    visit(name, number);
  }
}

struct Mean {
  double sum = 0;
  std::int64_t count = 0;
};

}  // namespace

void mean_over_workers(StepResult& result, Group& workers) {
  config::Table mine;
  mine[kTokens] = config::Node(result.tokens);
  mine[kCounted] = config::Node(result.counted);
  if (result.has_loss()) {
    each_mean(result, [&](const std::string& name, double number) { mine["mean " + name] = config::Node(number); });
  }
  if (!result.abort.empty()) {
    mine[kAbort] = config::Node(result.abort);
  }
  std::map<std::string, Mean> means;
  result.tokens = result.counted = 0;
  result.abort.clear();
  const std::vector<std::string> all = workers.tell(config::to_json(config::Node(std::move(mine)), config::JsonStyle::exact));
  for (std::size_t worker = 0; worker < all.size(); ++worker) {
    const config::Node told = config::parse_json(all[worker], "the numbers of a worker", config::JsonStyle::exact);
    for (const auto& [name, node] : *told.table()) {
      if (name == kAbort) {
        result.abort = result.abort.empty() ? format("worker {}: {}", worker, std::get<std::string>(node.value)) : result.abort;
      } else if (name == kTokens || name == kCounted) {
        (name == kTokens ? result.tokens : result.counted) += std::get<std::int64_t>(node.value);
      } else {
        Mean& mean = means[name];
        mean.sum += std::get<double>(node.value);
        ++mean.count;
      }
    }
  }
  each_mean(result, [&](const std::string& name, double& number) {
    if (const auto found = means.find("mean " + name); found != means.end()) {
      number = found->second.sum / static_cast<double>(found->second.count);
    }
  });
}

config::Node told_by_workers(const config::Node& mine, Group& workers) {
  config::Array out;
  for (const std::string& text : workers.tell(config::to_json(mine, config::JsonStyle::exact))) {
    out.push_back(config::parse_json(text, "the state of a worker", config::JsonStyle::exact));
  }
  return config::Node(std::move(out));
}

const config::Table* own_of_workers(const config::Table& state, std::int64_t worker) {
  const config::Node* const list = state.find("workers");
  const auto* const workers = list != nullptr ? std::get_if<config::Array>(&list->value) : nullptr;
  const bool there = workers != nullptr && static_cast<std::size_t>(worker) < workers->size();
  return there ? (*workers)[static_cast<std::size_t>(worker)].table() : &state;
}

}  // namespace kf
