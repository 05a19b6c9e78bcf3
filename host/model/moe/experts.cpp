#include "model/moe/experts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "kernels/grouped_linear/grouped_linear.h"
#include "kernels/product/product.h"
#include "model/moe/expert_exchange.h"
#include "model/recompute/kept_results.h"
#include "parallel/group.h"

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

/// What comes after them: y (R, C) -> (N, C). Dropped rows, the last ones, may be missing in y.
at::Tensor combined_output(at::Tensor y, const Dispatch& dispatch, const ExpertRows& rows) {
  if (dispatch.gradient_factors.defined()) {
    y = scale_gradient(y, dispatch.gradient_factors.index_select(0, rows.expert.narrow(0, 0, y.size(0))).unsqueeze(1));
  }
  if (const std::int64_t missing = rows.order.size(0) - y.size(0); missing > 0) {
    y = at::cat({y, at::zeros({missing, y.size(1)}, y.options().requires_grad(false))});
  }
  return combine_rows(y, output_weights(dispatch), rows);
}

/// The expert of every assignment; that behind the last one for those that are dropped.
at::Tensor places(const Dispatch& dispatch, std::int64_t experts) {
  return dispatch.dropped.defined() ? dispatch.experts.masked_fill(dispatch.dropped, experts) : dispatch.experts;
}

}  // namespace

at::Tensor Experts::by_expert(const at::Tensor& x, const Dispatch& dispatch, std::int64_t experts, Group* owners, const Work& work) {
  if (owners == nullptr || owners->size() == 1) {
    const ExpertRows rows(dispatch.experts, experts);
    return combined_output(work(sorted_input(x, dispatch, rows), rows), dispatch, rows);
  }
  const ExpertRows rows(places(dispatch, experts), experts + 1);
  const ExpertExchange exchange(rows.counts.narrow(0, 0, experts), *owners);
  const at::Tensor sent = sorted_input(x, dispatch, rows).narrow(0, 0, exchange.sent());
  const at::Tensor back = exchange.back(work(exchange.there(sent), exchange.rows()));
  return combined_output(back, dispatch, rows);
}

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
  return ranks_.many() ? all.narrow(1, ranks_.rank() * mine, mine).contiguous() : all;
}

at::Tensor StackedExperts::outer_bias(const Stack& stack) const {
  if (stack.bias == nullptr) {
    return {};
  }
  return ranks_.rank() == 0 ? stack.bias->value : stack.bias->value * 0;  // graphs have one shape on all ranks
}

Dispatch StackedExperts::shared(const Dispatch& dispatch) const {
  Dispatch out = dispatch;
  out.weights = ranks_.shared(dispatch.weights);
  return out;
}

StackedExperts::StackedExperts(const ExpertsOptions& o, const Activation& activation)
    : experts_(o.experts), owners_(o.owners), ranks_(o.ranks), activation_(activation) {
  ranks_.share_of(o.hidden, "numbers of an expert's inner width");
  up_ = add_stack(o, "up", o.dim, o.hidden, o.in);
  down_ = add_stack(o, "down", o.hidden, o.dim, o.out);
  if (activation.gated()) {
    gate_ = add_stack(o, "gate", o.dim, o.hidden, o.in);
  }
}

at::Tensor GroupedExperts::forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& /*context*/) const {
  const Work work = [this](const at::Tensor& in, const ExpertRows& rows) {
    const auto linear = [&](const char* name, const Stack& stack, const at::Tensor& bias, const at::Tensor& input) {
      return named_result(name, [&] { return product_(input, stack.weight->value, bias, rows); });
    };
    const at::Tensor up = linear("up", up_, inner_bias(up_), in);  // (R, F)
    const at::Tensor hidden =
        gate_.weight != nullptr ? activation_.gate(linear("gate", gate_, inner_bias(gate_), in), up) : activation_.plain(up);
    return linear("down", down_, outer_bias(down_), hidden);
  };
  return by_expert(x, shared(dispatch), experts_, owners_, work);
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

std::vector<std::vector<at::Tensor>> LoopExperts::weights() const {
  std::vector<std::vector<at::Tensor>> weights{up_.weight->value.unbind(0), down_.weight->value.unbind(0)};
  if (gate_.weight != nullptr) {
    weights.push_back(gate_.weight->value.unbind(0));
  }
  return weights;
}

at::Tensor LoopExperts::sorted(const at::Tensor& rows, const ExpertRows& order) const {
  const std::vector<std::vector<at::Tensor>> weights = this->weights();
  const std::vector<std::int64_t> borders = order.borders();
  std::vector<at::Tensor> out;
  for (std::size_t e = 0; e + 1 < borders.size(); ++e) {
    out.push_back(run(static_cast<std::int64_t>(e), weights, rows.narrow(0, borders[e], borders[e + 1] - borders[e])));
  }
  return at::cat(out);
}

at::Tensor LoopExperts::forward(const at::Tensor& x, const Dispatch& given, const ForwardContext& /*context*/) const {
  const Dispatch dispatch = shared(given);
  if (owners_ != nullptr && owners_->size() > 1) {
    return by_expert(x, dispatch, experts_, owners_,
                     [this](const at::Tensor& rows, const ExpertRows& order) { return sorted(rows, order); });
  }
  const std::vector<std::vector<at::Tensor>> weights = this->weights();
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
  return sum.to(x.scalar_type());
}

ModuleExperts::ModuleExperts(std::vector<std::shared_ptr<Mlp>> experts, Group* owners) : experts_(std::move(experts)), owners_(owners) {
  for (std::size_t e = 0; e < experts_.size(); ++e) {
    add_child("experts." + std::to_string(e), experts_[e]);
    if (owners_ != nullptr && owners_->size() > 1) {
      place(static_cast<std::int64_t>(e));
    }
  }
}

/// Its weights lie whole on one rank; a number, which cannot be cut, on all of them.
void ModuleExperts::place(std::int64_t expert) {
  const std::int64_t owner = expert / (static_cast<std::int64_t>(experts_.size()) / owners_->size());
  for (const auto& [name, weight] : experts_[static_cast<std::size_t>(expert)]->named_parameters()) {
    if (!weight->shape.empty()) {
      Shape sizes(static_cast<std::size_t>(owners_->size()), 0);
      sizes[static_cast<std::size_t>(owner)] = weight->shape[0];
      weight->placement.cuts = {{Axis::ep, 0, std::move(sizes), owners_->rank()}};
    }
  }
}

bool ModuleExperts::any_trains() const {
  return std::any_of(experts_.begin(), experts_.end(), [](const std::shared_ptr<Mlp>& expert) {
    const auto weights = expert->named_parameters();
    return std::any_of(weights.begin(), weights.end(), [](const auto& named) { return named.second->trains(); });
  });
}

at::Tensor ModuleExperts::forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& context) const {
  const auto count = static_cast<std::int64_t>(experts_.size());
  const std::int64_t first = owners_ != nullptr ? owners_->rank() * (count / owners_->size()) : 0;
  return by_expert(x, dispatch, count, owners_, [&](const at::Tensor& in, const ExpertRows& rows) {
    const std::vector<std::int64_t> borders = rows.borders();
    std::vector<at::Tensor> out;
    for (std::size_t e = 0; e + 1 < borders.size(); ++e) {
      const std::shared_ptr<Mlp>& expert = experts_[static_cast<std::size_t>(first) + e];
      out.push_back(expert->forward(in.narrow(0, borders[e], borders[e + 1] - borders[e]), context));
    }
    at::Tensor y = at::cat(out);
    if (owners_ != nullptr && at::GradMode::is_enabled() && !y.requires_grad() && any_trains()) {
      y = y.detach().requires_grad_();  // experts of other ranks train, and backward is a call of all ranks
    }
    return y;
  });
}

}  // namespace kf
