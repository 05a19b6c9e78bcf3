#include <ATen/ATen.h>

#include <optional>

#include "kernels/layer_norm/layer_norm.h"

namespace kf {

at::Tensor plain_layer_norm(const at::Tensor& x, const LayerNormWeights& weights, double eps) {
  const at::ScalarType wide = at::promote_types(x.scalar_type(), at::kFloat);
  const auto in_wide = [&](const at::Tensor& w) { return w.defined() ? std::optional(w.to(wide)) : std::nullopt; };
  // x is used once, see Block
  return at::layer_norm(at::alias(x).to(wide), {x.size(-1)}, in_wide(weights.factor), in_wide(weights.bias), eps).to(x.scalar_type());
}

SumAndNorm plain_add_layer_norm(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps) {
  const at::Tensor sum = x + branch;
  return {sum, plain_layer_norm(sum, weights, eps)};
}

}  // namespace kf
