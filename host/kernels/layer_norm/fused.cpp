#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/row_layer_norm.h"
#include "kernels/rms_norm/row_norm.h"
#include "kernels/simd/tensor_rows.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Weight = std::optional<at::Tensor>;  // a function of the graph refuses undefined tensors

Weight given(const at::Tensor& weight) { return weight.defined() ? Weight(weight) : std::nullopt; }
LayerNormWeights weights_of(const Weight& factor, const Weight& bias) {
  return {factor.value_or(at::Tensor()), bias.value_or(at::Tensor())};
}

/// What backward computes with, as forward kept it.
struct Kept {
  at::Tensor h, statistics;
  LayerNormWeights weights;
  double eps = 0;

  static void keep(AutogradContext& context, const at::Tensor& h, const at::Tensor& statistics, const LayerNormWeights& weights,
                   double eps) {
    context.save_for_backward({h, statistics, weights.factor, weights.bias});
    context.saved_data["eps"] = eps;
  }
  static Kept of(AutogradContext& context) {
    const variable_list saved = context.get_saved_variables();
    return {saved[0], saved[1], {saved[2], saved[3]}, context.saved_data["eps"].toDouble()};
  }
};

/// `first`: the place of the factor among the inputs that are there, which are those that the graph counts.
LayerNormWants wants_of(AutogradContext& context, const LayerNormWeights& weights, std::size_t first, bool x) {
  const bool has_factor = weights.factor.defined();
  return {x, has_factor && context.needs_input_grad(first),
          weights.bias.defined() && context.needs_input_grad(first + (has_factor ? 1 : 0))};
}

/// Gradients of h, factor and bias that have gradients themselves: those of the twin.
variable_list gradients_by_twin(const Kept& kept, const at::Tensor& gradient, const LayerNormWants& wants) {
  const auto alias = [](const at::Tensor& weight) { return weight.defined() ? at::alias(weight) : weight; };
  const at::Tensor h = at::alias(kept.h);
  const LayerNormWeights weights{alias(kept.weights.factor), alias(kept.weights.bias)};
  variable_list wanted;
  for (const auto& [is_wanted, each] :
       {std::pair{wants.x, h}, std::pair{wants.factor, weights.factor}, std::pair{wants.bias, weights.bias}}) {
    if (is_wanted) {
      wanted.push_back(each);
    }
  }
  const variable_list found =
      torch::autograd::grad({plain_layer_norm(h, weights, kept.eps)}, wanted, {gradient}, {}, /*create_graph=*/true);
  auto next = found.begin();
  const auto take = [&](bool is_wanted) { return is_wanted ? *next++ : at::Tensor(); };
  variable_list out(3);
  out[0] = take(wants.x);
  out[1] = take(wants.factor);
  out[2] = take(wants.bias);
  return out;
}

/// Of h, factor and bias.
variable_list gradients_of(const Kept& kept, const at::Tensor& gradient, const at::Tensor& beside, const LayerNormWants& wants) {
  if (at::GradMode::is_enabled()) {
    variable_list out = gradients_by_twin(kept, gradient, wants);
    out[0] = wants.x && beside.defined() ? beside + out[0] : out[0];
    return out;
  }
  RowLayerNormGradients rows = row_layer_norm_gradients(kept.h, gradient, beside, kept.statistics, kept.weights.factor, wants);
  const auto typed = [](const at::Tensor& sum, const at::Tensor& like) { return sum.defined() ? sum.to(like.scalar_type()) : sum; };
  return {rows.x, typed(rows.factor, kept.weights.factor), typed(rows.bias, kept.weights.bias)};
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Weight& factor, const Weight& bias, double eps) {
    const LayerNormWeights weights = weights_of(factor, bias);
    RowLayerNorm rows = row_layer_norm(x, {}, weights, eps);
    Kept::keep(*context, x, rows.statistics, weights, eps);
    return std::move(rows.norm);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Kept kept = Kept::of(*context);
    variable_list out = gradients_of(kept, gradients[0], {}, wants_of(*context, kept.weights, 1, context->needs_input_grad(0)));
    out.emplace_back();
    return out;
  }
};

/// Keeps the sum, which is kept for the norm anyway.
struct AddLayerNormFunction : torch::autograd::Function<AddLayerNormFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& branch, const Weight& factor,
                               const Weight& bias, double eps) {
    const LayerNormWeights weights = weights_of(factor, bias);
    const RowLayerNorm rows = row_layer_norm(x, branch, weights, eps);
    Kept::keep(*context, rows.sum, rows.statistics, weights, eps);
    context->set_materialize_grads(false);
    return {rows.sum, rows.norm};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor &of_sum = gradients[0], &of_norm = gradients[1];
    if (!of_norm.defined()) {
      return {of_sum, of_sum, at::Tensor(), at::Tensor(), at::Tensor()};
    }
    const Kept kept = Kept::of(*context);
    const bool wants_sum = context->needs_input_grad(0) || context->needs_input_grad(1);
    const variable_list found = gradients_of(kept, of_norm, of_sum, wants_of(*context, kept.weights, 2, wants_sum));
    return {found[0], found[0], found[1], found[2], at::Tensor()};
  }
};

bool by_rows(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights) {
  return norms_by_rows(x, branch, weights.factor) && norms_by_rows(x, {}, weights.bias);
}

}  // namespace

at::Tensor fused_layer_norm(const at::Tensor& x, const LayerNormWeights& weights, double eps) {
  if (!by_rows(x, {}, weights)) {
    return plain_layer_norm(x, weights, eps);
  }
  // Heads that lie as (B, T, H, D) stay so, and their rows need no copy.
  if (x.dim() == 4 && !simd::rows_of(x) && simd::rows_of(x.transpose(1, 2))) {
    return LayerNormFunction::apply(x.transpose(1, 2), given(weights.factor), given(weights.bias), eps).transpose(1, 2);
  }
  return LayerNormFunction::apply(x, given(weights.factor), given(weights.bias), eps);
}

SumAndNorm fused_add_layer_norm(const at::Tensor& x, const at::Tensor& branch, const LayerNormWeights& weights, double eps) {
  if (!by_rows(x, branch, weights)) {
    return plain_add_layer_norm(x, branch, weights, eps);
  }
  variable_list out = AddLayerNormFunction::apply(x, branch, given(weights.factor), given(weights.bias), eps);
  return {std::move(out[0]), std::move(out[1])};
}

}  // namespace kf
