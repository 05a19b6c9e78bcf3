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
  std::int64_t first(std::int64_t expert) const { return borders[static_cast<std::size_t>(expert)]; }
  std::int64_t count(std::int64_t expert) const { return borders[static_cast<std::size_t>(expert) + 1] - first(expert); }
  /// The rows of `all` (N, ..) that go to an expert.
  at::Tensor rows_of(const at::Tensor& all, std::int64_t expert) const {
    return all.index_select(0, token.narrow(0, first(expert), count(expert)));
  }

  at::Tensor order, token;  // as ExpertRows
  std::vector<std::int64_t> borders;
  std::int64_t slots;
  GateKind kind;
};

/// Rows that experts made, to be added up by token: `parts` of them from each expert.
class TokenSums {
 public:
  TokenSums(const Routes& routes, std::int64_t parts)
      : routes_(routes), parts_(parts), rows_(static_cast<std::size_t>(routes.order.numel() * parts)) {}

  /// (rows of the expert, C).
  void add(std::int64_t expert, std::int64_t part, at::Tensor rows) {
    const auto* const order = routes_.order.const_data_ptr<std::int64_t>() + routes_.first(expert);
    const auto* const data = static_cast<const char*>(rows.const_data_ptr());
    const auto bytes = static_cast<std::int64_t>(rows.element_size()) * rows.size(1);
    for (std::int64_t r = 0; r < rows.size(0); ++r) {
      rows_[static_cast<std::size_t>(order[r] * parts_ + part)] = data + r * bytes;
    }
    made_.push_back(std::move(rows));
  }

  /// Into `out` (N, C). `weights` (N, k) fp32, or undefined for 1.
  void sum(const at::Tensor& out, const at::Tensor& weights) const {
    const simd::RowSums of{rows_.data(),
                           weights.defined() ? weights.const_data_ptr<float>() : nullptr,
                           routes_.slots * parts_,
                           out.mutable_data_ptr(),
                           out.size(1),
                           simd::is_bf16(out)};
    static const auto kernel = KF_SIMD_PICK(sum_token_rows);
    simd::share(out.size(0), rows_a_share(out.size(1) * of.each),
                [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  }

 private:
  const Routes& routes_;
  std::int64_t parts_;
  std::vector<const void*> rows_;  // (N k, parts)
  std::vector<at::Tensor> made_;
};

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
  at::Tensor out = at::zeros({of[kX].size(0), of[kDown].size(1)}, row_weights.options().requires_grad(false));
  for (std::int64_t e = 0; e < routes.experts(); ++e) {
    const at::Tensor in = routes.rows_of(of[kX], e);
    const at::Tensor hidden = plain_gate(routes.kind, at::linear(in, of[kGate][e]), at::linear(in, of[kUp][e]));
    const at::Tensor weights = row_weights.narrow(0, routes.first(e), routes.count(e)).unsqueeze(1);
    out = out.index_add(0, routes.token.narrow(0, routes.first(e), routes.count(e)), at::linear(hidden, of[kDown][e]) * weights);
  }
  return out.to(of[kX].scalar_type());
}

/// What backward finds, and what it asks for.
struct Backward {
  const Routes& routes;
  const variable_list& saved;  // the inputs, then gate and up of each expert that has rows
  at::Tensor gradient;         // (N, C')
  at::Tensor row_weights;      // (R) fp32
  variable_list found;         // by Input; undefined where nobody wants it
  TokenSums for_x;

  void write(Input which, std::int64_t expert, const at::Tensor& gradients, const at::Tensor& in) const {
    if (const at::Tensor& all = found[which]; all.defined()) {
      at::Tensor out = all[expert];
      product_tn_out(out, gradients, in);
    }
  }

  /// `gate`, `up` (rows, F): what forward kept of this expert.
  void of_expert(std::int64_t expert, const at::Tensor& gate, const at::Tensor& up) {
    const at::Tensor rows = routes.rows_of(gradient, expert);
    const at::Tensor hidden = fused_gate(routes.kind, gate, up);
    const at::Tensor inner = product_nn(rows, saved[kDown][expert]);
    const at::Tensor products = weighed(hidden, inner, row_weights.narrow(0, routes.first(expert), routes.count(expert)));
    if (found[kWeights].defined()) {
      const auto* const order = routes.order.const_data_ptr<std::int64_t>() + routes.first(expert);
      for (std::int64_t r = 0; r < products.size(0); ++r) {
        found[kWeights].mutable_data_ptr<float>()[order[r]] = products.const_data_ptr<float>()[r];
      }
    }
    write(kDown, expert, rows, hidden);
    through_gate(routes.kind, gate, up, inner, hidden);
    const at::Tensor &for_gate = inner, &for_up = hidden;
    if (found[kX].defined()) {
      for_x.add(expert, 0, product_nn(for_gate, saved[kGate][expert]));
      for_x.add(expert, 1, product_nn(for_up, saved[kUp][expert]));
    }
    if (found[kGate].defined() || found[kUp].defined()) {
      const at::Tensor in = routes.rows_of(saved[kX], expert);
      write(kGate, expert, for_gate, in);
      write(kUp, expert, for_up, in);
    }
  }

  /// Of an expert to which nobody went.
  void of_none(std::int64_t expert) const {
    for (const Input which : {kGate, kUp, kDown}) {
      if (found[which].defined()) {
        found[which][expert].zero_();
      }
    }
  }
};

struct GatedExpertsNode : torch::autograd::Function<GatedExpertsNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up,
                            const at::Tensor& down, const at::Tensor& weights, const c10::intrusive_ptr<Routes>& routes) {
    variable_list saved{x, gate, up, down, weights};
    TokenSums sums(*routes, 1);
    for (std::int64_t e = 0; e < routes->experts(); ++e) {
      if (routes->count(e) > 0) {
        const at::Tensor in = routes->rows_of(x, e);
        saved.push_back(product_nt(in, gate[e]));
        saved.push_back(product_nt(in, up[e]));
        sums.add(e, 0, product_nt(fused_gate(routes->kind, saved[saved.size() - 2], saved.back()), down[e]));
      }
    }
    at::Tensor out = at::empty({x.size(0), down.size(1)}, x.options());
    sums.sum(out, weights);
    context->save_for_backward(std::move(saved));
    context->saved_data["routes"] = c10::IValue::make_capsule(routes);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto routes = c10::static_intrusive_pointer_cast<Routes>(context->saved_data["routes"].toCapsule());
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for
      const variable_list inputs(saved.begin(), saved.begin() + kRoutes);
      variable_list again = formula_gradients(formula(*routes, inputs), inputs, gradients[0]);
      again.resize(kInputs);
      return again;
    }
    Backward work{*routes, saved, gradients[0].contiguous(), saved[kWeights].flatten().index_select(0, routes->order), {}, {*routes, 2}};
    work.found.resize(kInputs);
    for (const Input which : {kX, kGate, kUp, kDown, kWeights}) {
      if (context->needs_input_grad(which)) {
        work.found[which] = at::empty(saved[which].sizes(), saved[which].options());
      }
    }
    std::size_t next = kRoutes;
    for (std::int64_t e = 0; e < routes->experts(); ++e) {
      if (routes->count(e) == 0) {
        work.of_none(e);
      } else {
        work.of_expert(e, saved[next], saved[next + 1]);
        next += 2;
      }
    }
    if (work.found[kX].defined()) {
      work.for_x.sum(work.found[kX], {});
    }
    return std::move(work.found);
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
