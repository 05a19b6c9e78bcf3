#include "kernels/grouped_linear/grouped_linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/product/product.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// y[a:b] = x[a:b] W_e^T + b_e for the rows a:b of every expert e.
struct SliceLinear : Function<SliceLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            const std::vector<std::int64_t>& borders) {
    context->save_for_backward({x, weight});
    context->saved_data["borders"] = borders;
    context->saved_data["bias"] = bias.has_value();
    at::Tensor y = at::empty({x.size(0), weight.size(1)}, x.options());
    for (std::int64_t e = 0; e < weight.size(0); ++e) {
      const auto [first, count] = slice_of(borders, e);
      if (count == 0) {
        continue;
      }
      at::Tensor out = y.narrow(0, first, count);
      product_nt_out(out, x.narrow(0, first, count), weight[e]);
      if (bias) {
        out.add_((*bias)[e]);
      }
    }
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor gradient = gradients[0].contiguous();
    const std::vector<std::int64_t> borders = context->saved_data["borders"].toIntVector();
    if (at::GradMode::is_enabled()) {
      return differentiable(x, weight, gradient, borders, context->saved_data["bias"].toBool());
    }
    at::Tensor for_x, for_weight, for_bias;
    if (context->needs_input_grad(0)) {
      for_x = at::empty_like(x);
    }
    if (context->needs_input_grad(1)) {
      for_weight = at::empty_like(weight);
    }
    if (context->saved_data["bias"].toBool()) {
      for_bias = at::empty({weight.size(0), weight.size(1)}, x.options());
    }
    for (std::int64_t e = 0; e < weight.size(0); ++e) {
      const auto [first, count] = slice_of(borders, e);
      const at::Tensor part = gradient.narrow(0, first, count);
      if (for_x.defined() && count > 0) {
        at::Tensor out = for_x.narrow(0, first, count);
        product_nn_out(out, part, weight[e]);
      }
      if (for_weight.defined()) {
        at::Tensor out = for_weight[e];
        if (count > 0) {
          product_tn_out(out, part, x.narrow(0, first, count));
        } else {
          out.zero_();
        }
      }
      if (for_bias.defined()) {
        for_bias[e].copy_(part.sum(0));
      }
    }
    return {for_x, for_weight, for_bias, {}};
  }

 private:
  /// The gradients by operators that have gradients of their own; writing into one result, as below, has none.
  static variable_list differentiable(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& gradient,
                                      const std::vector<std::int64_t>& borders, bool bias) {
    std::vector<at::Tensor> for_x, for_weight, for_bias;
    for (std::int64_t e = 0; e < weight.size(0); ++e) {
      const auto [first, count] = slice_of(borders, e);
      const at::Tensor part = gradient.narrow(0, first, count);
      for_x.push_back(part.mm(weight[e]));
      for_weight.push_back(part.t().mm(x.narrow(0, first, count)));
      for_bias.push_back(part.sum(0));
    }
    return {at::cat(for_x), at::stack(for_weight), bias ? at::stack(for_bias) : at::Tensor(), {}};
  }

  static std::pair<std::int64_t, std::int64_t> slice_of(const std::vector<std::int64_t>& borders, std::int64_t expert) {
    const auto e = static_cast<std::size_t>(expert);
    return {borders[e], borders[e + 1] - borders[e]};
  }
};

/// at::_grouped_mm wants rows of whole 16-byte pieces; on a CPU without bf16 instructions it is slower than products through fp32.
bool fits_grouped_mm(const at::Tensor& x, const at::Tensor& weight) {
  if (x.is_cpu() && products().bf16_widened) {
    return false;
  }
  const bool low = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  return low && weight.size(1) % 8 == 0 && weight.size(2) % 8 == 0 && x.size(0) > 0;
}

}  // namespace

at::Tensor fused_grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ExpertRows& rows) {
  if (!fits_grouped_mm(x, weight)) {
    const std::optional<at::Tensor> same_type = bias.defined() ? std::optional(bias.to(x.scalar_type())) : std::nullopt;
    return SliceLinear::apply(x, weight, same_type, rows.borders());
  }
  at::Tensor y = at::_grouped_mm(x, weight.transpose(1, 2), rows.ends());  // (R, O)
  if (!bias.defined()) {
    return y;
  }
  // One-hot rows: the bias's gradient is a product, too, without colliding writes.
  const at::Tensor one_hot = at::zeros({x.size(0), weight.size(0)}, x.options()).scatter_(1, rows.expert.unsqueeze(1), 1);
  return y + one_hot.mm(bias.to(x.scalar_type()));
}

}  // namespace kf
