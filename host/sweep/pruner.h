#pragma once
// Asynchronous successive halving (Li et al. 2018): at steps r, r*eta, r*eta^2, ... a trial goes on only if it is among the best 1/eta of
// those that came so far. Like Optuna's SuccessiveHalvingPruner: trials are not paused, so the first eta - 1 go on while they are the best.

#include <cstdint>
#include <functional>
#include <vector>

namespace kf::sweep {

struct AshaOptions {
  std::int64_t min_resource = 1;  // steps of the first rung, r
  std::int64_t reduction_factor = 4;
};

struct AshaVerdict {
  bool prune = false;
  std::int64_t rungs = 0;  // how many have been reached now; their value is the reported one
};

/// A report of `value` at `step` by a trial that had reached `rungs` before. `others(rung)` are the values of the other trials there.
/// Not a number is always cut.
AshaVerdict asha(const AshaOptions& options, bool maximise, std::int64_t rungs, std::int64_t step, double value,
                 const std::function<std::vector<double>(std::int64_t rung)>& others);

}  // namespace kf::sweep
