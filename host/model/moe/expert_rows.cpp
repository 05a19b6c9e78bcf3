#include "model/moe/expert_rows.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <tuple>
#include <utility>

#include "kernels/product.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// The sum over slots of rows[inverse[:, slot]], in `type`: (R, C) -> (N, C).
at::Tensor sum_slots(const at::Tensor& rows, const at::Tensor& inverse) {
  if (inverse.size(1) == 1) {
    return rows.index_select(0, inverse.select(1, 0));
  }
  const at::ScalarType wide = at::promote_types(rows.scalar_type(), at::kFloat);
  at::Tensor sum = rows.index_select(0, inverse.select(1, 0)).to(wide);
  for (std::int64_t slot = 1; slot < inverse.size(1); ++slot) {
    sum.add_(rows.index_select(0, inverse.select(1, slot)));
  }
  return sum.to(rows.scalar_type());
}

struct Gather : Function<Gather> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& token, const at::Tensor& inverse) {
    context->save_for_backward({inverse});
    return x.index_select(0, token);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {sum_slots(gradients[0], context->get_saved_variables()[0]), {}, {}};
  }
};

struct Combine : Function<Combine> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weights, const at::Tensor& order,
                            const at::Tensor& inverse) {
    context->save_for_backward({y, weights, order, inverse});
    at::Tensor sum = at::zeros({inverse.size(0), y.size(1)}, y.options().dtype(at::promote_types(y.scalar_type(), weights.scalar_type())));
    for (std::int64_t slot = 0; slot < inverse.size(1); ++slot) {
      sum.addcmul_(y.index_select(0, inverse.select(1, slot)).to(sum.scalar_type()), weights.narrow(1, slot, 1));
    }
    return sum.to(y.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &y = saved[0], &weights = saved[1], &order = saved[2], &inverse = saved[3];
    const at::Tensor& gradient = gradients[0];  // (N, C)
    const at::Tensor token = order.div(inverse.size(1), "floor");
    const at::Tensor row_weights = weights.flatten().index_select(0, order).unsqueeze(1);  // (R, 1)
    const at::Tensor for_rows = (gradient.index_select(0, token) * row_weights).to(y.scalar_type());
    std::vector<at::Tensor> for_weights;
    for (std::int64_t slot = 0; slot < inverse.size(1); ++slot) {
      for_weights.push_back((y.index_select(0, inverse.select(1, slot)).to(weights.scalar_type()) * gradient).sum(1));
    }
    return {for_rows, at::stack(for_weights, 1).to(weights.scalar_type()), {}, {}};
  }
};

struct ScaleGradient : Function<ScaleGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& factors) {
    context->save_for_backward({factors});
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {(gradients[0] * context->get_saved_variables()[0]).to(gradients[0].scalar_type()), {}};
  }
};

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

ExpertRows::ExpertRows(const at::Tensor& experts, std::int64_t n_experts) : slots(experts.size(1)) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = experts.flatten();
  std::tie(expert, order) = at::sort(flat, /*stable=*/true, 0, /*descending=*/false);
  inverse = at::empty_like(order).scatter_(0, order, at::arange(order.numel(), order.options())).view_as(experts);
  token = order.div(slots, "floor");
  counts = at::zeros({n_experts}, flat.options()).scatter_add_(0, flat, at::ones_like(flat));
}

at::Tensor ExpertRows::ends() const { return counts.cumsum(0).to(at::kInt); }

std::vector<std::int64_t> ExpertRows::borders() const {
  const at::Tensor ends = counts.cumsum(0).to(at::kCPU);
  const auto* const data = ends.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> borders{0};
  borders.insert(borders.end(), data, data + ends.numel());
  return borders;
}

at::Tensor gather_rows(const at::Tensor& x, const ExpertRows& rows) { return Gather::apply(x, rows.token, rows.inverse); }

at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& weights, const ExpertRows& rows) {
  return Combine::apply(y, weights, rows.order, rows.inverse);
}

at::Tensor per_row(const at::Tensor& assignments, const ExpertRows& rows) {
  return Gather::apply(assignments.flatten().unsqueeze(1), rows.order, rows.inverse.view({-1, 1}));
}

at::Tensor scale_gradient(const at::Tensor& x, const at::Tensor& factors) { return ScaleGradient::apply(x, factors); }

at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ExpertRows& rows) {
  if (!fits_grouped_mm(x, weight)) {
    const std::optional<at::Tensor> same_type = bias.defined() ? std::optional(bias.to(x.scalar_type())) : std::nullopt;
    return SliceLinear::apply(x, weight, same_type, rows.borders());
  }
  const at::Tensor y = at::_grouped_mm(x, weight.transpose(1, 2), rows.ends());  // (R, O)
  if (!bias.defined()) {
    return y;
  }
  // One-hot rows: the bias's gradient is a product, too, without colliding writes.
  const at::Tensor one_hot = at::zeros({x.size(0), weight.size(0)}, x.options()).scatter_(1, rows.expert.unsqueeze(1), 1);
  return y + one_hot.mm(bias.to(x.scalar_type()));
}

}  // namespace kf
