#pragma once
// What a weight holds before anything trains it.

#include "model/parameter.h"
#include "model/placement.h"

namespace kf {

/// The part `range` of the weight, filled by its rule: fp32, on the CPU, so that every device starts from the same numbers. Each draw
/// depends on the seed, the name and the element alone; a stack is drawn expert by expert, by the names that files have for them alone, so
/// that both of its forms start alike.
at::Tensor first_values(const Parameter& parameter, std::uint64_t seed, const Range& range);

/// Fills the weights that are still `unfilled`: what a file lacked that may lack it. For after loading; what forward reads follows.
void draw_unfilled(const ParameterList& parameters, std::uint64_t seed);

}  // namespace kf
