#pragma once
// The rotation of queries and keys (Su et al. 2021) by angles that are given.

#include <ATen/core/Tensor.h>

namespace kf {

/// (a, b) -> (a cos - b sin, b cos + a sin) for the pairs of x (.., T, n): neighbours if `interleaved`, else i and i + n/2.
/// cos, sin (T, n/2) fp32, without gradients; the arithmetic is fp32, the result has the type of x. Can be differentiated twice. One node
/// of the graph: half the passes over memory.
at::Tensor fused_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved);
/// The same by plain operators.
at::Tensor plain_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved);

}  // namespace kf
