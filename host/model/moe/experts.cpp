#include "model/moe/experts.h"

#include <ATen/ATen.h>

#include "kernels/grouped_linear/grouped_linear.h"
#include "kernels/product/product.h"
#include "model/recompute/kept_results.h"

namespace kf {
namespace {

/// What comes before the experts: sorted rows, weighed where the input is.
at::Tensor sorted_input(const at::Tensor& x, const Dispatch& dispatch, const ExpertRows& rows) {
  const at::Tensor sorted = gather_rows(x, rows);  // (R, C)
  return dispatch.weigh_input ? sorted * per_row(dispatch.weights, rows).to(x.scalar_type()) : sorted;
}

/// Weights that were taken into the input count there: an output is then kept or, behind a full expert, dropped.
at::Tensor output_weights(const Dispatch& dispatch) {
  return dispatch.weigh_input ? dispatch.weights.detach().ne(0).to(dispatch.weights.scalar_type()) : dispatch.weights;
}

/// What comes after them: y (R, C) -> (N, C).
at::Tensor combined_output(at::Tensor y, const Dispatch& dispatch, const ExpertRows& rows) {
  if (dispatch.gradient_factors.defined()) {
    y = scale_gradient(y, dispatch.gradient_factors.index_select(0, rows.expert).unsqueeze(1));
  }
  return combine_rows(y, output_weights(dispatch), rows);
}

}  // namespace

StackedExperts::Stack StackedExperts::add_stack(const ExpertsOptions& o, const std::string& name, std::int64_t in, std::int64_t out,
                                                const Init& init) {
  Stack stack;
  stack.weight = add_parameter(name + "_w", {o.experts, out, in}, init);
  stack.weight->split = name == "down" ? Split::rowwise : Split::colwise;  // over tp the inner width; over ep the experts
  stack.weight->stack = StackNames{name + "_w", "experts.{}." + name + "_proj.weight", o.packed};
  if (o.bias) {
    stack.bias = add_parameter(name + "_bias", {o.experts, out}, Init::zeros(), Role::vector);
    stack.bias->split = Split::experts;
    stack.bias->keep_fp32 = true;  // as every vector
    stack.bias->stack = StackNames{name + "_bias", "experts.{}." + name + "_proj.bias", o.packed};
  }
  return stack;
}

at::Tensor StackedExperts::inner_bias(const Stack& stack) const {
  if (stack.bias == nullptr) {
    return {};
  }
  const at::Tensor& all = stack.bias->value;  // (E, F)
  const std::int64_t mine = all.size(1) / ranks_.size();
  return ranks_.many() ? all.narrow(1, ranks_.rank() * mine, mine) : all;
}

at::Tensor StackedExperts::outer_bias(const Stack& stack) const {
  return stack.bias != nullptr && ranks_.rank() == 0 ? stack.bias->value : at::Tensor();
}

Dispatch StackedExperts::shared(const Dispatch& dispatch) const {
  Dispatch out = dispatch;
  out.weights = ranks_.shared(dispatch.weights);
  return out;
}

StackedExperts::StackedExperts(const ExpertsOptions& o, const Activation& activation)
    : experts_(o.experts), ranks_(o.ranks), activation_(activation) {
  ranks_.share_of(o.hidden, "numbers of an expert's inner width");
  up_ = add_stack(o, "up", o.dim, o.hidden, o.in);
  down_ = add_stack(o, "down", o.hidden, o.dim, o.out);
  if (activation.gated()) {
    gate_ = add_stack(o, "gate", o.dim, o.hidden, o.in);
  }
}

at::Tensor GroupedExperts::forward(const at::Tensor& x, const Dispatch& given, const ForwardContext& /*context*/) const {
  const Dispatch dispatch = shared(given);
  const ExpertRows rows(dispatch.experts, experts_);
  const at::Tensor in = sorted_input(ranks_.shared(x), dispatch, rows);
  const auto linear = [&](const char* name, const Stack& stack, const at::Tensor& bias, const at::Tensor& input) {
    return named_result(name, [&] { return product_(input, stack.weight->value, bias, rows); });
  };
  const at::Tensor up = linear("up", up_, inner_bias(up_), in);  // (R, F)
  const at::Tensor hidden =
      gate_.weight != nullptr ? activation_.gate(linear("gate", gate_, inner_bias(gate_), in), up) : activation_.plain(up);
  return ranks_.summed(combined_output(linear("down", down_, outer_bias(down_), hidden), dispatch, rows));
}

at::Tensor LoopExperts::run(std::int64_t expert, const std::vector<std::vector<at::Tensor>>& weights, const at::Tensor& x) const {
  const auto e = static_cast<std::size_t>(expert);
  const auto linear = [&](const char* name, const at::Tensor& bias, std::size_t which, const at::Tensor& input) {
    const at::Tensor y = named_result(name, [&] { return kf::linear(input, weights[which][e]); });
    return bias.defined() ? y + bias[expert].to(y.scalar_type()) : y;
  };
  const at::Tensor up = linear("up", inner_bias(up_), 0, x);
  const at::Tensor hidden = gate_.weight != nullptr ? activation_.gate(linear("gate", inner_bias(gate_), 2, x), up) : activation_.plain(up);
  return linear("down", outer_bias(down_), 1, hidden);
}

at::Tensor LoopExperts::forward(const at::Tensor& all, const Dispatch& given, const ForwardContext& /*context*/) const {
  const at::Tensor x = ranks_.shared(all);
  const Dispatch dispatch = shared(given);
  std::vector<std::vector<at::Tensor>> weights{up_.weight->value.unbind(0), down_.weight->value.unbind(0)};
  if (gate_.weight != nullptr) {
    weights.push_back(gate_.weight->value.unbind(0));
  }
  const at::Tensor factors = output_weights(dispatch);
  at::Tensor sum = at::zeros(x.sizes(), x.options().dtype(at::promote_types(x.scalar_type(), factors.scalar_type())));
  for (std::int64_t e = 0; e < experts_; ++e) {
    const std::vector<at::Tensor> chosen = dispatch.experts.eq(e).nonzero().unbind(1);  // tokens, slots
    at::Tensor in = x.index_select(0, chosen[0]);
    if (dispatch.weigh_input) {
      in = in * dispatch.weights.index({chosen[0], chosen[1]}).unsqueeze(1).to(x.scalar_type());
    }
    at::Tensor y = run(e, weights, in);
    if (dispatch.gradient_factors.defined()) {
      y = scale_gradient(y, dispatch.gradient_factors[e]);
    }
    sum = sum.index_add(0, chosen[0], y * factors.index({chosen[0], chosen[1]}).unsqueeze(1));
  }
  return ranks_.summed(sum.to(x.scalar_type()));
}

ModuleExperts::ModuleExperts(std::vector<std::shared_ptr<Mlp>> experts) : experts_(std::move(experts)) {
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    add_child("experts." + std::to_string(e), experts_[e]);
  }
}

at::Tensor ModuleExperts::forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& context) const {
  const ExpertRows rows(dispatch.experts, static_cast<std::int64_t>(experts_.size()));
  const at::Tensor in = sorted_input(x, dispatch, rows);
  const std::vector<std::int64_t> borders = rows.borders();
  std::vector<at::Tensor> out;
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    out.push_back(experts_[e]->forward(in.narrow(0, borders[e], borders[e + 1] - borders[e]), context));
  }
  return combined_output(at::cat(out), dispatch, rows);
}

}  // namespace kf
