#pragma once
// Losses give sums over counted tokens; the loop divides once, over all micro-batches and ranks.

#include <ATen/core/Tensor.h>

namespace kf {

class Loss {
 public:
  virtual ~Loss() = default;
  /// logits (N, V), labels (N) int64 with kIgnore for positions that do not count -> 0-dim fp32: the sum over counted tokens
  /// (0 when there are none). Computed in fp32 whatever the type of the logits.
  virtual at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const = 0;
};

/// Sum over all positions of logsumexp(logits)^2 in fp32 (PaLM, section 5); the caller multiplies by z_loss_weight / positions.
at::Tensor z_loss_sum(const at::Tensor& logits);

}  // namespace kf
