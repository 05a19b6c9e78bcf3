#pragma once
// The samplers that draw numbers: at random, or where earlier trials were good.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sweep/draw.h"
#include "sweep/random.h"
#include "sweep/trial.h"

namespace kf::sweep {

/// Even draws; the same for the same seed, trial number and attempt, whatever other trials did.
class RandomSuggester final : public Suggester {
 public:
  explicit RandomSuggester(Random random) : random_(std::move(random)) {}
  double draw(const std::string& /*name*/, const Distribution& distribution) override { return random_.draw(distribution); }

 private:
  Random random_;
};

/// Tree-structured Parzen estimator (Bergstra et al. 2011): of kCandidates draws from a model of the best tenth of the trials (25 at most)
/// the one that is most likely there and least likely among the rest. As in Optuna: parameters that all trials share are modelled jointly,
/// others each by itself; pruned trials count by how far they came; running ones count as bad, so that workers keep apart; the first
/// kStartup finished trials are random.
class TpeSuggester final : public Suggester {
 public:
  static constexpr std::int64_t kStartup = 10;
  static constexpr int kCandidates = 24;

  TpeSuggester(const std::vector<Trial>& history, bool maximise, Random random);
  double draw(const std::string& name, const Distribution& distribution) override;

 private:
  using Group = std::vector<Parameter>;  // names and distributions that are modelled together

  Group shared_parameters() const;
  std::vector<double> sample(const Group& group);
  std::vector<std::vector<double>> observations(const std::vector<const Trial*>& trials, const Group& group) const;

  Random random_;
  std::vector<const Trial*> good_;  // by number
  std::vector<const Trial*> bad_;
  bool startup_ = true;
  std::map<std::string, Parameter> joint_;  // already drawn
};

}  // namespace kf::sweep
