#include "kernels/linear_loss/output_head.h"

#include <ATen/ATen.h>

#include "kernels/product/product.h"

namespace kf {

at::Tensor head_product(const at::Tensor& hidden, const OutputHead& head) {
  const bool widens = head.precision == OutputHead::Precision::fp32 && c10::isReducedFloatingType(hidden.scalar_type());
  return widens ? kf::linear(hidden.to(at::kFloat), head.weight.to(at::kFloat)) : kf::linear(hidden, head.weight);
}

at::Tensor shape_logits(const at::Tensor& logits, const OutputHead& head) {
  at::Tensor out = head.scale == 1 ? logits : logits * head.scale;
  return head.softcap > 0 ? at::tanh(out / head.softcap) * head.softcap : out;
}

}  // namespace kf
