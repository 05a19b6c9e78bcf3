#include "kernels/rms_norm/rms_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

#include "kernels/rms_norm/row_norm.h"
#include "kernels/simd/tensor_rows.h"

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

using Factor = std::optional<at::Tensor>;  // a function of the graph refuses undefined tensors

Factor given(const at::Tensor& factor) { return factor.defined() ? Factor(factor) : std::nullopt; }
at::Tensor or_none(const Factor& factor) { return factor.value_or(at::Tensor()); }

at::Tensor times(const at::Tensor& normal, const Factor& factor) { return factor ? normal * *factor : normal; }

/// What backward computes with, as forward kept it.
struct Kept {
  at::Tensor x;
  at::Tensor scale;  // 1 / rms
  Factor factor;
  double eps;

  static void keep(AutogradContext& context, const at::Tensor& x, const at::Tensor& scale, const Factor& factor, double eps) {
    context.save_for_backward(factor ? variable_list{x, scale, *factor} : variable_list{x, scale});
    context.saved_data["eps"] = eps;
  }
  static Kept of(AutogradContext& context) {
    const variable_list saved = context.get_saved_variables();
    return {saved[0], saved[1], saved.size() > 2 ? Factor(saved[2]) : std::nullopt, context.saved_data["eps"].toDouble()};
  }
};

/// With n = x r and r = 1 / rms: dx = r (h - n mean(h n)) for h = g factor, dfactor = sum over rows of g n. By formulas that have gradients
/// themselves, which must see how the scale depends on x.
std::pair<at::Tensor, at::Tensor> gradients_with_gradients(const Kept& kept, const at::Tensor& given) {
  const at::Tensor& x = kept.x;
  const at::Tensor scale = inverse_rms(x, wide_type(x), kept.eps);
  const at::Tensor normal = x * scale;  // promoted
  const at::Tensor gradient = given.to(wide_type(x));
  const at::Tensor scaled = times(gradient, kept.factor);
  const at::Tensor for_x = ((scaled - normal * (scaled * normal).mean(-1, /*keepdim=*/true)) * scale).to(x.scalar_type());
  return {for_x, kept.factor ? (gradient * normal).flatten(0, -2).sum(0).to(kept.factor->scalar_type()) : at::Tensor()};
}

/// The same, each large result overwritten by the next.
std::pair<at::Tensor, at::Tensor> gradients_in_place(const Kept& kept, const at::Tensor& gradient, bool wants_x, bool wants_factor) {
  at::Tensor for_x, for_factor;
  at::Tensor normal = kept.x * kept.scale;
  at::Tensor product = gradient * normal;  // g n, promoted
  if (kept.factor) {
    if (wants_factor) {
      for_factor = product.flatten(0, -2).sum(0).to(kept.factor->scalar_type());
    }
    product.mul_(*kept.factor);
  }
  if (wants_x) {
    normal.mul_(product.mean(-1, /*keepdim=*/true));
    product = at::Tensor();
    at::Tensor scaled = gradient.to(wide_type(kept.x));
    if (kept.factor) {
      scaled = scaled.is_same(gradient) ? scaled * *kept.factor : scaled.mul_(*kept.factor);
    }
    for_x = normal.neg_().add_(scaled).mul_(kept.scale).to(kept.x.scalar_type());
  }
  return {for_x, for_factor};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Factor& factor, double eps) {
    if (norms_by_rows(x, {}, or_none(factor))) {
      RowNorm rows = row_norm(x, {}, or_none(factor), eps);
      Kept::keep(*context, x, rows.inverse, factor, eps);
      return std::move(rows.norm);
    }
    const at::Tensor scale = inverse_rms(x, wide_type(x), eps);
    Kept::keep(*context, x, scale, factor, eps);
    at::Tensor out = x * scale;  // promoted
    if (factor) {
      out.mul_(*factor);
    }
    return out.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Kept kept = Kept::of(*context);
    if (at::GradMode::is_enabled()) {
      auto [for_x, for_factor] = gradients_with_gradients(kept, gradients[0]);
      return {for_x, for_factor, at::Tensor()};
    }
    const bool wants_x = context->needs_input_grad(0), wants_factor = kept.factor && context->needs_input_grad(1);
    if (norms_by_rows(kept.x, {}, or_none(kept.factor))) {
      RowNormGradients rows = row_norm_gradients(kept.x, gradients[0], {}, kept.scale, or_none(kept.factor), wants_x, wants_factor);
      return {rows.x, rows.factor, at::Tensor()};
    }
    auto [for_x, for_factor] = gradients_in_place(kept, gradients[0], wants_x, wants_factor);
    return {for_x, for_factor, at::Tensor()};
  }
};

/// By rows alone. Keeps the sum, which is kept for the norm anyway.
struct AddRmsNormFunction : torch::autograd::Function<AddRmsNormFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& branch, const Factor& factor, double eps) {
    const RowNorm rows = row_norm(x, branch, or_none(factor), eps);
    Kept::keep(*context, rows.sum, rows.inverse, factor, eps);
    context->set_materialize_grads(false);
    return {rows.sum, rows.norm};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Kept kept = Kept::of(*context);
    const at::Tensor &of_sum = gradients[0], &of_norm = gradients[1];
    if (!of_norm.defined()) {
      return {of_sum, of_sum, at::Tensor(), at::Tensor()};
    }
    if (at::GradMode::is_enabled()) {
      auto [for_sum, for_factor] = gradients_with_gradients(kept, of_norm);
      for_sum = of_sum.defined() ? of_sum + for_sum : for_sum;
      return {for_sum, for_sum, for_factor, at::Tensor()};
    }
    const bool wants_sum = context->needs_input_grad(0) || context->needs_input_grad(1);
    const bool wants_factor = kept.factor && context->needs_input_grad(2);
    const RowNormGradients rows = row_norm_gradients(kept.x, of_norm, of_sum, kept.scale, or_none(kept.factor), wants_sum, wants_factor);
    return {rows.x, rows.x, rows.factor, at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& factor, double eps) {
  // Heads that lie as (B, T, H, D) stay so, and their rows need no copy.
  if (x.dim() == 4 && norms_by_rows(x, {}, factor) && !simd::rows_of(x) && simd::rows_of(x.transpose(1, 2))) {
    return RmsNormFunction::apply(x.transpose(1, 2), given(factor), eps).transpose(1, 2);
  }
  return RmsNormFunction::apply(x, given(factor), eps);
}

SumAndNorm fused_add_rms_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps) {
  if (!norms_by_rows(x, branch, factor)) {
    const at::Tensor sum = x + branch;
    return {sum, fused_rms_norm(sum, factor, eps)};
  }
  variable_list out = AddRmsNormFunction::apply(x, branch, given(factor), eps);
  return {std::move(out[0]), std::move(out[1])};
}

}  // namespace kf
