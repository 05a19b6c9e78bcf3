#include "kernels/rms_norm/rms_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::ScalarType wide_type(const at::Tensor& x) { return at::promote_types(x.scalar_type(), at::kFloat); }

/// 1 / sqrt(mean(x^2) + eps): (.., C) -> (.., 1) in `wide`.
at::Tensor inverse_rms(const at::Tensor& x, at::ScalarType wide, double eps) {
  const auto width = static_cast<double>(x.size(-1));
  return (at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true, wide).square() / width + eps).rsqrt();
}

using Factor = std::optional<at::Tensor>;

at::Tensor times(const at::Tensor& normal, const Factor& factor) { return factor ? normal * *factor : normal; }

/// With n = x r and r = 1 / rms: dx = r (h - n mean(h n)) for h = g factor, dfactor = sum over rows of g n.
struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Factor& factor, double eps) {
    const at::Tensor scale = inverse_rms(x, wide_type(x), eps);
    context->save_for_backward(factor ? variable_list{x, scale, *factor} : variable_list{x, scale});
    context->saved_data["eps"] = eps;
    at::Tensor out = x * scale;  // promoted
    if (factor) {
      out.mul_(*factor);
    }
    return out.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const Factor factor = saved.size() > 2 ? Factor(saved[2]) : std::nullopt;
    const at::ScalarType wide = wide_type(x);
    const at::Tensor& scale = saved[1];
    at::Tensor for_x, for_factor;
    if (at::GradMode::is_enabled()) {  // a gradient of this gradient must see how the scale depends on x
      const at::Tensor again = inverse_rms(x, wide, context->saved_data["eps"].toDouble());
      const at::Tensor normal = x * again;  // promoted
      const at::Tensor gradient = gradients[0].to(wide);
      const at::Tensor scaled = times(gradient, factor);
      for_x = ((scaled - normal * (scaled * normal).mean(-1, /*keepdim=*/true)) * again).to(x.scalar_type());
      if (factor) {
        for_factor = (gradient * normal).flatten(0, -2).sum(0).to(factor->scalar_type());
      }
      return {for_x, for_factor, at::Tensor()};
    }
    // The same, each large result overwritten by the next.
    at::Tensor normal = x * scale;
    at::Tensor product = gradients[0] * normal;  // g n, promoted
    if (factor) {
      if (context->needs_input_grad(1)) {
        for_factor = product.flatten(0, -2).sum(0).to(factor->scalar_type());
      }
      product.mul_(*factor);
    }
    if (context->needs_input_grad(0)) {
      normal.mul_(product.mean(-1, /*keepdim=*/true));
      product = at::Tensor();
      at::Tensor scaled = gradients[0].to(wide);
      if (factor) {
        scaled = scaled.is_same(gradients[0]) ? scaled * *factor : scaled.mul_(*factor);
      }
      for_x = normal.neg_().add_(scaled).mul_(scale).to(x.scalar_type());
    }
    return {for_x, for_factor, at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& factor, double eps) {
  return RmsNormFunction::apply(x, factor.defined() ? Factor(factor) : std::nullopt, eps);
}

}  // namespace kf
