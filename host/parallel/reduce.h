#pragma once
// The arithmetic of groups, in the order that group.h promises.

#include <vector>

namespace at {
class Tensor;
}

namespace kf {

/// ((p0 + p1) + p2) + ..., in float32 and rounded once where the type is narrower. A new tensor, unless there is one part.
/// `into_first`: the first part may be overwritten, and the result may be it.
at::Tensor sum_in_order(const std::vector<at::Tensor>& parts, bool into_first = false);
/// The largest, element by element; NaN wins.
at::Tensor largest_of(const std::vector<at::Tensor>& parts);
/// to.copy_(from), unseen by autograd; nothing where the two are the same memory.
void copy_unless_same(const at::Tensor& to, const at::Tensor& from);

}  // namespace kf
