#include "kernels/grouped_linear/expert_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>
#include <utility>

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

at::Tensor unsorted_rows(const at::Tensor& y, const ExpertRows& rows) {
  return Gather::apply(y, rows.inverse.flatten(), rows.order.unsqueeze(1));
}

at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& weights, const ExpertRows& rows) {
  return Combine::apply(y, weights, rows.order, rows.inverse);
}

at::Tensor per_row(const at::Tensor& assignments, const ExpertRows& rows) {
  return Gather::apply(assignments.flatten().unsqueeze(1), rows.order, rows.inverse.view({-1, 1}));
}

at::Tensor scale_gradient(const at::Tensor& x, const at::Tensor& factors) { return ScaleGradient::apply(x, factors); }

}  // namespace kf
