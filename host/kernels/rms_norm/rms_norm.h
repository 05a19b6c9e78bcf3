#pragma once
// x / sqrt(mean(x^2) + eps), times a factor (Zhang and Sennrich 2019, equation 4).

#include <ATen/core/Tensor.h>

namespace kf {

/// x (.., C), factor (C) or undefined -> (.., C) in the type of x; statistics and products in fp32 (double for double). Can be
/// differentiated twice. One node of the graph, which keeps x in its own type and one number a row; on a CPU in fp32 and bf16 by rows, each
/// read once.
at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& factor, double eps);
/// The same by plain operators, which keep fp32 copies of all of it.
at::Tensor plain_rms_norm(const at::Tensor& x, const at::Tensor& factor, double eps);

/// A residual stream and what is computed with next.
struct SumAndNorm {
  at::Tensor sum;   // x + branch
  at::Tensor norm;  // of the sum
};

/// x, branch (.., C) of one type: their sum and its norm at once, and on the way back the gradients of both; to the last bit what one after
/// the other gives.
SumAndNorm fused_add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps);
SumAndNorm plain_add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps);

}  // namespace kf
