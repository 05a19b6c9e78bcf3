#include "sweep/tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sweep/parzen.h"

namespace kf::sweep {
namespace {

/// Smaller is better; a value that is not a number is the worst.
double loss_of(double value, bool maximise) {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : maximise ? -value : value;
}

/// Complete trials before pruned ones; those by how far they came, then by their last report.
struct Rank {
  bool pruned;
  std::int64_t steps;
  double loss;
};

Rank rank_of(const Trial& trial, bool maximise) {
  if (trial.state == TrialState::complete) {
    return {false, 0, loss_of(trial.value.value_or(std::numeric_limits<double>::quiet_NaN()), maximise)};
  }
  if (trial.reports.empty()) {
    return {true, std::numeric_limits<std::int64_t>::min(), 0};
  }
  return {true, trial.reports.rbegin()->first, loss_of(trial.reports.rbegin()->second, maximise)};
}

bool better(const Rank& a, const Rank& b) {
  if (a.pruned != b.pruned) {
    return !a.pruned;
  }
  return a.steps != b.steps ? a.steps > b.steps : a.loss < b.loss;
}

}  // namespace

TpeSuggester::TpeSuggester(const std::vector<Trial>& history, bool maximise, Random random) : random_(std::move(random)) {
  std::vector<const Trial*> finished;
  for (const Trial& trial : history) {
    if (trial.state == TrialState::complete || trial.state == TrialState::pruned) {
      finished.push_back(&trial);
    } else if (trial.state == TrialState::running || trial.state == TrialState::waiting) {
      bad_.push_back(&trial);
    }
  }
  startup_ = static_cast<std::int64_t>(finished.size()) < kStartup;
  std::stable_sort(finished.begin(), finished.end(),
                   [maximise](const Trial* a, const Trial* b) { return better(rank_of(*a, maximise), rank_of(*b, maximise)); });
  const std::size_t share = std::min<std::size_t>((finished.size() + 9) / 10, 25);
  good_.assign(finished.begin(), finished.begin() + static_cast<std::ptrdiff_t>(share));
  bad_.insert(bad_.end(), finished.begin() + static_cast<std::ptrdiff_t>(share), finished.end());
  const auto by_number = [](const Trial* a, const Trial* b) { return a->number < b->number; };
  std::sort(good_.begin(), good_.end(), by_number);
  std::sort(bad_.begin(), bad_.end(), by_number);
  if (const Group group = startup_ ? Group() : shared_parameters(); !group.empty()) {
    const std::vector<double> values = sample(group);
    for (std::size_t i = 0; i < group.size(); ++i) {
      joint_[group[i].name] = {group[i].name, group[i].distribution, values[i]};
    }
  }
}

TpeSuggester::Group TpeSuggester::shared_parameters() const {
  std::vector<const Trial*> finished = good_;
  std::copy_if(bad_.begin(), bad_.end(), std::back_inserter(finished), [](const Trial* trial) { return trial->finished(); });
  Group group;
  for (const Parameter& p : finished.front()->parameters) {
    const bool everywhere = std::all_of(finished.begin(), finished.end(), [&p](const Trial* trial) {
      const Parameter* other = trial->parameter(p.name);
      return other != nullptr && other->distribution == p.distribution;
    });
    if (everywhere && !p.distribution.single()) {
      group.push_back(p);
    }
  }
  return group;
}

double TpeSuggester::draw(const std::string& name, const Distribution& distribution) {
  if (startup_) {
    return random_.draw(distribution);
  }
  const auto drawn = joint_.find(name);
  if (drawn != joint_.end() && drawn->second.distribution == distribution) {
    return drawn->second.stored;
  }
  return distribution.single() ? distribution.at(0) : sample({{name, distribution, 0}}).front();
}

std::vector<double> TpeSuggester::sample(const Group& group) {
  std::vector<Distribution> space;
  for (const Parameter& p : group) {
    space.push_back(p.distribution);
  }
  const ParzenEstimator good(space, observations(good_, group));
  const ParzenEstimator bad(space, observations(bad_, group));
  std::vector<double> best;
  double best_ratio = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCandidates; ++i) {
    std::vector<double> candidate = good.sample(random_);
    const double ratio = good.log_density(candidate) - bad.log_density(candidate);
    if (best.empty() || ratio > best_ratio) {
      best_ratio = ratio;
      best = std::move(candidate);
    }
  }
  return best;
}

std::vector<std::vector<double>> TpeSuggester::observations(const std::vector<const Trial*>& trials, const Group& group) const {
  std::vector<std::vector<double>> out;
  for (const Trial* trial : trials) {
    std::vector<double> row;
    for (const Parameter& p : group) {
      const Parameter* seen = trial->parameter(p.name);
      if (seen == nullptr || !(seen->distribution == p.distribution)) {
        break;
      }
      row.push_back(seen->stored);
    }
    if (row.size() == group.size()) {
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace kf::sweep
