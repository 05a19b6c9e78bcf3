#include "model/norm.h"

#include <ATen/ATen.h>

namespace kf {

RmsNorm::RmsNorm(std::int64_t dim, double eps) : weight_(add_parameter("weight", {dim}, Init::ones(), Role::vector)), eps_(eps) {}

at::Tensor RmsNorm::forward(const at::Tensor& x) const {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps_);  // (.., 1)
  return (wide * scale * weight_->value).to(x.scalar_type());
}

LayerNorm::LayerNorm(std::int64_t dim, double eps)
    : weight_(add_parameter("weight", {dim}, Init::ones(), Role::vector)),
      bias_(add_parameter("bias", {dim}, Init::zeros(), Role::vector)),
      eps_(eps) {}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  return at::layer_norm(x.to(at::kFloat), weight_->shape, weight_->value, bias_->value, eps_).to(x.scalar_type());
}

}  // namespace kf
