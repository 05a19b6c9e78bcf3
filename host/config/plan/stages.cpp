#include "config/plan/stages.h"

#include <algorithm>
#include <limits>

#include "config/plan/derived.h"
#include "core/error.h"

namespace kf::config {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Costs of runs of layers, the head with the last one.
class Costs {
 public:
  Costs(const ModelConfig& model, std::int64_t seq_len) : sums_{0} {
    for (std::int64_t layer = 0; layer < model.n_layers; ++layer) {
      sums_.push_back(sums_.back() + layer_flops(model, layer, seq_len));
    }
    sums_.back() += head_flops(model, seq_len);
    const double total = sums_.back();
    for (double& sum : sums_) {
      sum /= total;
    }
  }
  std::int64_t layers() const { return static_cast<std::int64_t>(sums_.size()) - 1; }
  double of(std::int64_t first, std::int64_t end) const {
    return sums_[static_cast<std::size_t>(end)] - sums_[static_cast<std::size_t>(first)];
  }

 private:
  std::vector<double> sums_;  // shares of the whole, before each layer and behind the last
};

/// For every first layer and number of stages: the best value of the pieces behind it. `join(cost, rest)` is the value of a piece and what
/// follows.
template <class Join>
std::vector<std::vector<double>> best_cuts(const Costs& costs, std::int64_t stages, const Join& join) {
  const std::int64_t layers = costs.layers();
  std::vector<std::vector<double>> best(static_cast<std::size_t>(stages) + 1,
                                        std::vector<double>(static_cast<std::size_t>(layers) + 1, kNever));
  best[0].back() = 0;
  for (std::size_t pieces = 1; pieces < best.size(); ++pieces) {
    for (std::int64_t first = 0; first < layers; ++first) {
      double& value = best[pieces][static_cast<std::size_t>(first)];
      for (std::int64_t end = first + 1; end <= layers; ++end) {
        value = std::min(value, join(costs.of(first, end), best[pieces - 1][static_cast<std::size_t>(end)]));
      }
    }
  }
  return best;
}

}  // namespace

Stage whole_stage(const ModelConfig& model) { return {0, model.n_layers, true, true}; }

std::vector<Stage> cut_stages(const ModelConfig& model, std::int64_t stages, std::int64_t seq_len) {
  KF_CHECK(stages >= 1 && stages <= model.n_layers, Code::config,
           "a model of {} layers (model.n_layers) cannot be cut into {} stages: every stage has at least one layer", model.n_layers,
           stages);
  constexpr double kSame = 1e-9;  // shares that differ by less are equal: sums round
  const Costs costs(model, seq_len);
  const double dearest = best_cuts(costs, stages, [](double cost, double rest) { return std::max(cost, rest); }).back().front();
  const auto join = [&](double cost, double rest) { return cost > dearest + kSame ? kNever : cost * cost + rest; };
  const auto best = best_cuts(costs, stages, join);
  std::vector<Stage> out;
  std::int64_t first = 0;
  for (std::int64_t left = stages; left > 0; --left) {
    std::int64_t end = costs.layers();
    const auto value = [&](std::int64_t at) {
      return join(costs.of(first, at), best[static_cast<std::size_t>(left) - 1][static_cast<std::size_t>(at)]);
    };
    while (value(end) > best[static_cast<std::size_t>(left)][static_cast<std::size_t>(first)] + kSame) {
      --end;
    }
    out.push_back({first, end, first == 0, left == 1});
    first = end;
  }
  return out;
}

}  // namespace kf::config
