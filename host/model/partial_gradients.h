#pragma once
// Gradients of which each rank along tp has a share.

#include "model/parameter.h"
#include "parallel/group.h"

namespace kf {

/// Whether the gradient of `weight`, on each of the ranks along tp, is a share of it: whole weights inside of divided layers, or beside a
/// split sequence.
bool has_partial_gradient(const Parameter& weight);

/// Such weights' gradients, once they are of all data: their sums over `ranks`. All ranks have the same weights.
void sum_partial_gradients(const ParameterList& weights, Group& ranks);

}  // namespace kf
