#pragma once
// How much memory an optimizer takes, before it has taken any.

#include "config/schema/config.h"
#include "model/parameter.h"

namespace kf {

struct OptimizerBytes {
  double state = 0;    // moments, bases and the like, from the first update on
  double passing = 0;  // besides, while an update runs
  bool known = true;   // false: an optimizer written in Lua; two moments in fp32 are assumed
};

/// Of the native optimizers of `config`.optimizer, with averaging.type's copy of the weights (and a second one while they are swapped for
/// an evaluation, which is no time of an update). `parameters` need no tensors yet.
OptimizerBytes optimizer_bytes(const config::Config& config, const ParameterList& parameters);

}  // namespace kf
