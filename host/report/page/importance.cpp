#include "report/page/importance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>

namespace kf::report {
namespace {

constexpr std::size_t kFewest = 6;  // trials

/// Ranks from 1; equal numbers have the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from;
    while (to < order.size() && values[order[to]] == values[order[from]]) {
      ++to;
    }
    for (std::size_t i = from; i < to; ++i) {
      ranks[order[i]] = static_cast<double>(from + to + 1) / 2;
    }
    from = to;
  }
  return ranks;
}

/// One parameter's values and the ranks of the objective, of the trials that have it.
struct Sample {
  std::vector<double> x, y;
  bool numeric = true;
};

/// The group of each trial: its choice, or its stretch of the values.
std::vector<std::size_t> groups_of(const Sample& sample) {
  std::vector<double> distinct = sample.x;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const std::size_t most = std::max<std::size_t>(2, std::min<std::size_t>(8, sample.x.size() / 5));
  const bool as_they_are = !sample.numeric || distinct.size() <= most;
  const std::vector<double> ranks = ranks_of(sample.x);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < sample.x.size(); ++i) {
    const double share = (ranks[i] - 0.5) / static_cast<double>(sample.x.size());
    out.push_back(as_they_are ? static_cast<std::size_t>(std::lower_bound(distinct.begin(), distinct.end(), sample.x[i]) - distinct.begin())
                              : std::min(most - 1, static_cast<std::size_t>(share * static_cast<double>(most))));
  }
  return out;
}

double epsilon_squared(const Sample& sample) {
  struct Group {
    double count = 0, sum = 0;
  };
  std::map<std::size_t, Group> groups;
  const std::vector<std::size_t> group = groups_of(sample);
  for (std::size_t i = 0; i < group.size(); ++i) {
    groups[group[i]].count += 1;
    groups[group[i]].sum += sample.y[i];
  }
  const auto n = static_cast<double>(sample.y.size());
  const double mean = std::accumulate(sample.y.begin(), sample.y.end(), 0.0) / n;
  double total = 0;
  double within = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Group& own = groups[group[i]];
    total += (sample.y[i] - mean) * (sample.y[i] - mean);
    within += (sample.y[i] - own.sum / own.count) * (sample.y[i] - own.sum / own.count);
  }
  const auto k = static_cast<double>(groups.size());
  return total > 0 && k > 1 && n > k ? std::max(0.0, 1 - (n - 1) * within / ((n - k) * total)) : 0;
}

}  // namespace

std::vector<Importance> importance_of(const std::vector<sweep::Trial>& trials) {
  std::vector<const sweep::Trial*> valued;
  std::vector<double> objective;
  std::vector<std::string> names;
  for (const sweep::Trial& trial : trials) {
    if (!trial.finished() || !trial.value || std::isnan(*trial.value)) {
      continue;
    }
    valued.push_back(&trial);
    objective.push_back(*trial.value);
    for (const sweep::Parameter& parameter : trial.parameters) {
      if (std::find(names.begin(), names.end(), parameter.name) == names.end()) {
        names.push_back(parameter.name);
      }
    }
  }
  if (valued.size() < kFewest) {
    return {};
  }
  const std::vector<double> ranks = ranks_of(objective);
  std::vector<Importance> out;
  for (const std::string& name : names) {
    Sample sample;
    for (std::size_t i = 0; i < valued.size(); ++i) {
      if (const sweep::Parameter* const parameter = valued[i]->parameter(name)) {
        sample.x.push_back(parameter->stored);
        sample.y.push_back(ranks[i]);
        sample.numeric = parameter->distribution.numeric();
      }
    }
    const bool varied = std::any_of(sample.x.begin(), sample.x.end(), [&](double x) { return x != sample.x.front(); });
    if (varied && sample.x.size() >= kFewest) {
      out.push_back({name, epsilon_squared(sample)});
    }
  }
  return out;
}

}  // namespace kf::report
