#pragma once
// The rotation of queries and keys (Su et al. 2021) by angles that are given.

#include <ATen/core/Tensor.h>

namespace kf {

/// (a, b) -> (a cos - b sin, b cos + a sin) for the pairs of the first n components of x (.., T, D): neighbours if `interleaved`, else i
/// and i + n/2; the others stay as they are. cos, sin (T, n/2), or (B or 1, 1, T, n/2) for x (B, H, T, D), fp32, without gradients; the
/// arithmetic is fp32, the result has the type of x. Can be differentiated twice. One node of the graph. On a CPU in fp32 and bf16 one pass
/// over x, whatever its strides, whose result lies as (B, T, H, D).
at::Tensor fused_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved);
/// The same by plain operators.
at::Tensor plain_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved);

}  // namespace kf
