#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/gate/gate.h"
#include "kernels/gate/gate_rows.h"
#include "kernels/gated_experts/gated_experts.h"
#include "kernels/gated_experts/token_rows.h"
#include "kernels/product/formula_gradients.h"
#include "kernels/product/product.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kGrain = 16384;  // numbers that are worth a thread

std::int64_t rows_a_share(std::int64_t width) { return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, width)); }

/// Who goes where, kept beside the tensors of the graph.
struct Routes : torch::CustomClassHolder {
  Routes(const ExpertRows& rows, GateKind of)
      : order(rows.order), token(rows.token), borders(rows.borders()), slots(rows.slots), kind(of) {}
  std::int64_t experts() const { return static_cast<std::int64_t>(borders.size()) - 1; }
  std::int64_t count(std::int64_t expert) const { return end(expert) - first(expert); }
  std::int64_t first(std::int64_t expert) const { return borders[static_cast<std::size_t>(expert)]; }
  std::int64_t end(std::int64_t expert) const { return borders[static_cast<std::size_t>(expert) + 1]; }
  /// The rows of an expert, of all rows (R, ..) in their order.
  at::Tensor rows_of(const at::Tensor& all, std::int64_t expert) const { return all.narrow(0, first(expert), count(expert)); }

  at::Tensor order, token;  // as ExpertRows
  std::vector<std::int64_t> borders;
  std::int64_t slots;
  GateKind kind;
};

// What lies between is one matrix for all experts, whose size is that of every step: blocks of the sizes of this step's experts would be
// new memory in each step.

/// (R, ..) of the type of `like`, one row for each assignment.
at::Tensor rows_like(const Routes& routes, const at::Tensor& like, std::int64_t width) {
  return at::empty({routes.order.numel(), width}, like.options().requires_grad(false));
}

/// a b^T (or a b) of the rows of each expert and its weight, into `out`.
template <class Product>
void each_product(const Routes& routes, const at::Tensor& out, const at::Tensor& rows, const at::Tensor& weights, const Product& product) {
  for (std::int64_t e = 0; e < routes.experts(); ++e) {
    if (routes.count(e) > 0) {
      at::Tensor of_expert = routes.rows_of(out, e);
      product(of_expert, routes.rows_of(rows, e), weights[e]);
    }
  }
}

/// The rows (R, C) of `parts`, added up by token into `out` (N, C). `weights` (N, k) fp32, or undefined for 1.
void sum_by_token(const Routes& routes, const variable_list& parts, const at::Tensor& out, const at::Tensor& weights) {
  const auto each = static_cast<std::int64_t>(parts.size());
  std::vector<const void*> rows(static_cast<std::size_t>(routes.order.numel() * each));  // (N k, parts)
  const auto* const order = routes.order.const_data_ptr<std::int64_t>();
  for (std::int64_t part = 0; part < each; ++part) {
    const at::Tensor& of = parts[static_cast<std::size_t>(part)];
    const auto* const data = static_cast<const char*>(of.const_data_ptr());
    const std::int64_t bytes = static_cast<std::int64_t>(of.element_size()) * of.size(1);
    for (std::int64_t r = 0; r < of.size(0); ++r) {
      rows[static_cast<std::size_t>(order[r] * each + part)] = data + r * bytes;
    }
  }
  const simd::RowSums of{rows.data(),         weights.defined() ? weights.const_data_ptr<float>() : nullptr,
                         routes.slots * each, out.mutable_data_ptr(),
                         out.size(1),         simd::is_bf16(out)};
  static const auto kernel = KF_SIMD_PICK(sum_token_rows);
  simd::share(out.size(0), rows_a_share(out.size(1) * of.each),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
}

/// Of each row, a b; both times the row's weight then.
at::Tensor weighed(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weights) {
  at::Tensor products = at::empty({a.size(0)}, weights.options());
  const simd::WeighedRows of{
      a.mutable_data_ptr(), b.mutable_data_ptr(), weights.const_data_ptr<float>(), products.mutable_data_ptr<float>(), a.size(1),
      simd::is_bf16(a)};
  static const auto kernel = KF_SIMD_PICK(weigh_rows);
  simd::share(a.size(0), rows_a_share(a.size(1)), [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return products;
}

simd::Rows all_of(const at::Tensor& x) { return {x.mutable_data_ptr(), 1, x.size(1), 0}; }

/// `gradient`, that of act(gate) * up, becomes that of gate; `for_up` is written.
void through_gate(GateKind kind, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& gradient, const at::Tensor& for_up) {
  const simd::GateBackward of{all_of(gate), all_of(up), all_of(gradient),   all_of(gradient), all_of(for_up),
                              gate.size(1), kind,       simd::is_bf16(gate)};
  static const auto kernel = KF_SIMD_PICK(gate_backward);
  simd::share(gate.size(0), rows_a_share(of.width), [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
}

enum Input : std::size_t { kX, kGate, kUp, kDown, kWeights, kRoutes, kInputs };

/// By operators that can be differentiated again.
at::Tensor formula(const Routes& routes, const variable_list& of) {
  const at::Tensor row_weights = of[kWeights].flatten().index_select(0, routes.order);
  const at::Tensor in = of[kX].index_select(0, routes.token);
  at::Tensor out = at::zeros({of[kX].size(0), of[kDown].size(1)}, row_weights.options().requires_grad(false));
  for (std::int64_t e = 0; e < routes.experts(); ++e) {
    const at::Tensor rows = routes.rows_of(in, e), weights = routes.rows_of(row_weights, e).unsqueeze(1);
    const at::Tensor hidden = plain_gate(routes.kind, at::linear(rows, of[kGate][e]), at::linear(rows, of[kUp][e]));
    out = out.index_add(0, routes.rows_of(routes.token, e), at::linear(hidden, of[kDown][e]) * weights);
  }
  return out.to(of[kX].scalar_type());
}

/// (E, ..): the gradients of the experts' weights, of which each is left^T right of its rows.
at::Tensor weight_gradients(const Routes& routes, const at::Tensor& like, const at::Tensor& left, const at::Tensor& right) {
  at::Tensor all = at::empty(like.sizes(), like.options().requires_grad(false));
  for (std::int64_t e = 0; e < routes.experts(); ++e) {
    at::Tensor out = all[e];
    if (routes.count(e) > 0) {
      product_tn_out(out, routes.rows_of(left, e), routes.rows_of(right, e));
    } else {
      out.zero_();
    }
  }
  return all;
}

struct GatedExpertsNode : torch::autograd::Function<GatedExpertsNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up,
                            const at::Tensor& down, const at::Tensor& weights, const c10::intrusive_ptr<Routes>& routes) {
    const at::Tensor gates = rows_like(*routes, x, gate.size(1)), ups = rows_like(*routes, x, gate.size(1));
    {
      const at::Tensor in = x.index_select(0, routes->token);
      each_product(*routes, gates, in, gate, product_nt_out);
      each_product(*routes, ups, in, up, product_nt_out);
    }
    const at::Tensor made = rows_like(*routes, x, down.size(1));
    each_product(*routes, made, fused_gate(routes->kind, gates, ups), down, product_nt_out);
    at::Tensor out = at::empty({x.size(0), down.size(1)}, x.options().requires_grad(false));
    sum_by_token(*routes, {made}, out, weights);
    context->save_for_backward({x, gate, up, down, weights, gates, ups});
    context->saved_data["routes"] = c10::IValue::make_capsule(routes);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto kept = c10::static_intrusive_pointer_cast<Routes>(context->saved_data["routes"].toCapsule());
    const Routes& routes = *kept;
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for
      const variable_list inputs(saved.begin(), saved.begin() + kRoutes);
      variable_list again = formula_gradients(formula(routes, inputs), inputs, gradients[0]);
      again.resize(kInputs);
      return again;
    }
    const at::Tensor &x = saved[kX], &gates = saved[kRoutes], &ups = saved[kRoutes + 1];
    variable_list found(kInputs);
    const at::Tensor hidden = fused_gate(routes.kind, gates, ups), inner = rows_like(routes, x, gates.size(1));
    {
      const at::Tensor rows = gradients[0].contiguous().index_select(0, routes.token);
      each_product(routes, inner, rows, saved[kDown], product_nn_out);
      const at::Tensor for_weights = weighed(hidden, inner, saved[kWeights].flatten().index_select(0, routes.order));
      if (context->needs_input_grad(kWeights)) {
        found[kWeights] = at::empty_like(for_weights).scatter_(0, routes.order, for_weights).view(saved[kWeights].sizes());
      }
      if (context->needs_input_grad(kDown)) {
        found[kDown] = weight_gradients(routes, saved[kDown], rows, hidden);
      }
    }
    through_gate(routes.kind, gates, ups, inner, hidden);
    const at::Tensor &for_gates = inner, &for_ups = hidden;
    if (context->needs_input_grad(kX)) {
      const variable_list parts{rows_like(routes, x, x.size(1)), rows_like(routes, x, x.size(1))};
      each_product(routes, parts[0], for_gates, saved[kGate], product_nn_out);
      each_product(routes, parts[1], for_ups, saved[kUp], product_nn_out);
      found[kX] = at::empty(x.sizes(), x.options().requires_grad(false));
      sum_by_token(routes, parts, found[kX], {});
    }
    if (context->needs_input_grad(kGate) || context->needs_input_grad(kUp)) {
      const at::Tensor in = x.index_select(0, routes.token);
      found[kGate] = context->needs_input_grad(kGate) ? weight_gradients(routes, saved[kGate], for_gates, in) : at::Tensor();
      found[kUp] = context->needs_input_grad(kUp) ? weight_gradients(routes, saved[kUp], for_ups, in) : at::Tensor();
    }
    return found;
  }
};

}  // namespace

at::Tensor fused_gated_experts(const GatedExpertsInput& in, const ExpertRows& rows) {
  for (const at::Tensor* weight : {&in.gate, &in.up, &in.down}) {
    if (!simd::takes(*weight) || !weight->is_contiguous() || weight->scalar_type() != in.x.scalar_type()) {
      return {};
    }
  }
  if (!simd::takes(in.x) || !simd::takes(in.weights) || in.weights.scalar_type() != at::kFloat) {
    return {};
  }
  return GatedExpertsNode::apply(in.x.contiguous(), in.gate, in.up, in.down, in.weights.contiguous(),
                                 c10::make_intrusive<Routes>(rows, in.kind));
}

}  // namespace kf
