#pragma once
// Stacks of experts: one parameter, a weight for each expert.

#include <cstdint>
#include <numeric>
#include <vector>

#include "model/parameter.h"

namespace kf {

/// Whether the weight is one of (E, out, in) matrices, or of (E, out) vectors, which belong to an expert each. Ranks may have some of them:
/// what an optimizer makes of one must not hang on the others.
inline bool is_expert_stack(const Parameter& weight) { return weight.shape.size() == 3 || weight.split == Split::experts; }

/// The dims of a matrix or vector, without that of a stack.
inline std::vector<std::int64_t> own_dims(const Parameter& weight) {
  std::vector<std::int64_t> out(weight.shape.size() - (is_expert_stack(weight) ? 1 : 0));
  std::iota(out.begin(), out.end(), is_expert_stack(weight) ? 1 : 0);
  return out;
}

}  // namespace kf
