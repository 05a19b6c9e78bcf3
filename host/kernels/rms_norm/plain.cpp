#include "kernels/rms_norm/rms_norm.h"

#include <ATen/ATen.h>

namespace kf {

at::Tensor plain_rms_norm(const at::Tensor& x, const at::Tensor& factor, double eps) {
  const at::Tensor wide = at::alias(x).to(at::promote_types(x.scalar_type(), at::kFloat));  // x is used once, see Block
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps);       // (.., 1)
  const at::Tensor normal = wide * scale;
  return (factor.defined() ? normal * factor : normal).to(x.scalar_type());
}

SumAndNorm plain_add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps) {
  const at::Tensor sum = x + branch;
  return {sum, plain_rms_norm(sum, factor, eps)};
}

}  // namespace kf
