#include "sweep/pruner.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kf::sweep {
namespace {

/// r * eta^rung, without overflow.
std::int64_t rung_step(const AshaOptions& options, std::int64_t rung) {
  std::int64_t step = options.min_resource;
  for (std::int64_t i = 0; i < rung; ++i) {
    if (step > std::numeric_limits<std::int64_t>::max() / options.reduction_factor) {
      return std::numeric_limits<std::int64_t>::max();
    }
    step *= options.reduction_factor;
  }
  return step;
}

/// `values` includes the trial's own.
bool promotable(double value, std::vector<double> values, std::int64_t eta, bool maximise) {
  const std::size_t places = std::max<std::size_t>(values.size() / static_cast<std::size_t>(eta), 1);
  std::sort(values.begin(), values.end());
  return maximise ? value >= values[values.size() - places] : value <= values[places - 1];
}

}  // namespace

AshaVerdict asha(const AshaOptions& options, bool maximise, std::int64_t rungs, std::int64_t step, double value,
                 const std::function<std::vector<double>(std::int64_t rung)>& others) {
  AshaVerdict verdict{false, rungs};
  while (step >= rung_step(options, verdict.rungs)) {
    if (std::isnan(value)) {
      verdict.prune = true;
      return verdict;
    }
    std::vector<double> values = others(verdict.rungs++);
    values.push_back(value);
    if (!promotable(value, std::move(values), options.reduction_factor, maximise)) {
      verdict.prune = true;
      return verdict;
    }
  }
  return verdict;
}

}  // namespace kf::sweep
