#pragma once
// How much each setting of a sweep matters for its objective.

#include <string>
#include <vector>

#include "sweep/trial.h"

namespace kf::report {

struct Importance {
  std::string name;
  double share = 0;  // 0 to 1
};

/// Of each parameter that varied the share of the objective's variance that it explains by itself: epsilon squared of a one-way analysis of
/// variance (Kelley 1935), 1 - (n - 1) SSW / ((n - k) SST), over the ranks of the values, so that one diverged trial does not count for
/// all. The n trials are parted by the values of a choice, or into k stretches of like many trials. At least 0. Trials without a value are
/// left out; empty with fewer than six. In the order of the parameters.
std::vector<Importance> importance_of(const std::vector<sweep::Trial>& trials);

}  // namespace kf::report
