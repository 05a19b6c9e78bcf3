#pragma once
// How much memory an optimizer takes, before it has taken any.

#include <vector>

#include "config/schema/config.h"
#include "model/parameter.h"

namespace kf {

struct OptimizerBytes {
  double state = 0;          // moments, bases and the like, from the first update on
  std::vector<double> each;  // of it those of each weight, in the order given
  std::vector<bool> whole;   // which of them must lie on one rank together (Optimizer::needs)
  double passing = 0;        // besides, while an update runs: `copies` of all numbers that train, or a few of the largest weight
  double copies = 0;         // fp32 copies of all that a rank trains
  bool by_tensor = false;    // goes from weight to weight with a few copies of one
  bool known = true;         // false: an optimizer written in Lua; two moments in fp32 are assumed
};

/// Copies of the largest weight that an optimizer which goes from weight to weight has beside it.
inline constexpr double kTensorCopies = 4;

/// Of the native optimizers of `config`.optimizer, with averaging.type's copy of the weights (and a second one while they are swapped for
/// an evaluation, which is no time of an update). `parameters` need no tensors yet.
OptimizerBytes optimizer_bytes(const config::Config& config, const ParameterList& parameters);

}  // namespace kf
