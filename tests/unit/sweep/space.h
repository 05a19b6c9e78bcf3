#pragma once
// Spaces written by hand.

#include <memory>
#include <string>
#include <vector>

#include "sweep/definition.h"
#include "sweep/draw.h"

namespace kf::sweep::test {

inline Entry entry(const std::string& key, Distribution distribution) { return {key, key, {}, std::move(distribution)}; }

inline Entry constant(const std::string& key, config::Node value) { return {key, key, {}, std::move(value)}; }

/// A choice between plain values.
inline Entry values(const std::string& key, std::vector<config::Node> options) {
  auto choice = std::make_shared<Choice>();
  choice->labels = Distribution::choice(options);
  for (config::Node& node : options) {
    choice->options.push_back({std::move(node), false, {}});
  }
  return {key, key, {}, std::shared_ptr<const Choice>(std::move(choice))};
}

/// A choice between groups of entries.
inline Entry groups(const std::string& name, std::vector<std::vector<Entry>> options) {
  auto choice = std::make_shared<Choice>();
  std::vector<config::Node> labels;
  for (std::vector<Entry>& group : options) {
    labels.emplace_back("group " + std::to_string(labels.size()));
    choice->options.push_back({{}, true, std::move(group)});
  }
  choice->labels = Distribution::choice(std::move(labels));
  return {name, "", {}, std::shared_ptr<const Choice>(std::move(choice))};
}

inline std::vector<config::Node> numbers(std::int64_t count) {
  std::vector<config::Node> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.emplace_back(i);
  }
  return out;
}

/// What a trial looks like to a sampler.
inline Trial finished(std::int64_t number, const Draw& draw, double value) {
  Trial trial;
  trial.number = number;
  trial.state = TrialState::complete;
  trial.parameters = draw.parameters;
  trial.value = value;
  return trial;
}

}  // namespace kf::sweep::test
