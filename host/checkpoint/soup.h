#pragma once
// The uniform soup (Wortsman et al. 2022, "Model soups", section 2): the mean of the weights of several runs or steps.

#include <vector>

#include "checkpoint/weights_at.h"

namespace kf {

/// The mean of each tensor, added up in fp32 (fp64 where it is that) in the given order, in the type of the first; made when it is asked
/// for, one input at a time. What has no fraction must be the same in all. Throws one Code::checkpoint error that lists every name and
/// shape in which the others differ from the first. NaN and infinities of the
/// sources are noted in `not_finite` when they are read. `all` is not empty; both outlive what is returned.
NamedTensors soup(const std::vector<WeightsAt>& all, Spoiled& not_finite);

}  // namespace kf
