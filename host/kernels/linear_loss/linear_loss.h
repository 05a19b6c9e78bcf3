#pragma once
// A head's product, its cross entropy and z-loss in one.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/linear_loss/output_head.h"

namespace kf {

/// Label of a position that is not counted; LibTorch's own.
inline constexpr std::int64_t kIgnoredLabel = -100;

struct LinearLossOptions {
  double ce = 1;  // factors of the two sums
  double z = 0;
  std::int64_t chunk = 4096;  // positions at a time
};

/// Sums over the positions, all 0-dim fp32 (double for double).
struct LinearLoss {
  at::Tensor total;  // ce + z, which carries the gradient
  at::Tensor ce, z;  // factors applied
};

/// `chunk` positions at a time: logits = cap(scale * h W^T) in the compute type, their cross entropy and z-loss in fp32, and straight away
/// the gradients of both for h (N, C) and W (V, C), which backward only multiplies. So N V logits are never held, and nothing is computed
/// twice: three products, as without chunks. Memory: (chunk, V) fp32 a few times, and W's gradient in fp32. `labels` (N) int64.
/// A second backward through the same result throws Code::other, and none can be differentiated.
LinearLoss fused_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options);
/// The same from all logits at once, by plain operators.
LinearLoss plain_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options);

/// -log softmax(logits)[label], summed over counted positions in fp32; the softmax in fp32, or, where `low`, in the type of the logits.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels, bool low);
/// The same with the softmax in fp32, of logits (N, V). On a CPU no fp32 copy of bf16 logits is made.
at::Tensor fused_cross_entropy(const at::Tensor& logits, const at::Tensor& labels);
at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace kf
