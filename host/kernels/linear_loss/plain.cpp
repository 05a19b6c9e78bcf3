#include <ATen/ATen.h>

#include "kernels/linear_loss/chunks.h"
#include "kernels/linear_loss/linear_loss.h"

namespace kf {

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& labels, bool low) {
  if (low && c10::isReducedFloatingType(logits.scalar_type())) {  // each position is rounded, their sum is not
    return at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, kIgnoredLabel).to(at::kFloat).sum();
  }
  return at::cross_entropy_loss(wide(logits), labels, {}, at::Reduction::Sum, kIgnoredLabel);
}

at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return cross_entropy_sum(logits, labels, /*low=*/false);
}

LinearLoss plain_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options) {
  const bool low = head.precision == OutputHead::Precision::compute;
  const at::Tensor product = head_product(hidden, head);
  const at::Tensor logits = shape_logits(low ? product : wide(product), head);
  const at::Tensor ce = cross_entropy_sum(logits, labels, low) * options.ce;
  const at::Tensor z = wide(logits.logsumexp(-1)).square().sum() * options.z;
  return {ce + z, ce.detach(), z.detach()};
}

}  // namespace kf
