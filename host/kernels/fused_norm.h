#pragma once
// x / sqrt(mean(x^2) + eps) in one node of the graph. It keeps x in its own type and one number a row; the plain twin in norm.cpp keeps
// fp32 copies of all of it.

#include <ATen/core/Tensor.h>

namespace kf {

/// x (.., C), factor (C) or undefined -> (.., C) in the type of x; statistics and products in fp32 (double for double).
at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& factor, double eps);

}  // namespace kf
