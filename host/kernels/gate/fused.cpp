#include "kernels/gate/gate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "kernels/gate/gate_rows.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kGrain = 16384;  // numbers that are worth a thread

bool by_rows(const at::Tensor& gate, const at::Tensor& up) {
  return simd::takes(gate) && simd::takes(up) && gate.scalar_type() == up.scalar_type() && gate.sizes().equals(up.sizes());
}

std::int64_t rows_a_share(std::int64_t width) { return std::max<std::int64_t>(1, kGrain / width); }

at::Tensor forward_by_rows(GateKind kind, const at::Tensor& gate, const at::Tensor& up) {
  at::Tensor out = at::empty(gate.sizes(), gate.options());
  const at::Tensor g = simd::in_rows(gate), u = simd::in_rows(up);
  const simd::GateForward of{*simd::rows_of(g), *simd::rows_of(u), *simd::rows_of(out), gate.size(-1), kind, simd::is_bf16(gate)};
  static const auto kernel = KF_SIMD_PICK(gate_forward);
  simd::share(simd::row_count(gate), rows_a_share(of.width),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return out;
}

/// Whether a and b are the halves of the rows of one matrix.
bool are_halves(const at::Tensor& a, const at::Tensor& b) {
  const std::int64_t width = a.size(-1);
  return a.dim() > 1 && a.strides().equals(b.strides()) && a.stride(-2) == 2 * width &&
         static_cast<const char*>(b.const_data_ptr()) - static_cast<const char*>(a.const_data_ptr()) ==
             width * static_cast<std::int64_t>(a.element_size());
}

/// Room for the gradients of both, of which one may not be wanted.
std::pair<at::Tensor, at::Tensor> room_for(const at::Tensor& gate, const at::Tensor& up, bool wants_gate, bool wants_up) {
  if (wants_gate && wants_up && are_halves(gate, up)) {
    const std::int64_t width = gate.size(-1);
    std::vector<std::int64_t> sizes = gate.sizes().vec();
    sizes.back() = 2 * width;
    const at::Tensor both = at::empty(sizes, gate.options());
    return {both.narrow(-1, 0, width), both.narrow(-1, width, width)};
  }
  const auto room = [&](bool wanted) { return wanted ? at::empty(gate.sizes(), gate.options()) : at::Tensor(); };
  return {room(wants_gate), room(wants_up)};
}

variable_list backward_by_rows(GateKind kind, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& gradient,
                               const std::pair<at::Tensor, at::Tensor>& out) {
  const at::Tensor g = simd::in_rows(gate), u = simd::in_rows(up), d = simd::in_rows(gradient);
  const auto written = [](const at::Tensor& x) { return x.defined() ? *simd::rows_of(x) : simd::Rows(); };
  const simd::GateBackward of{
      *simd::rows_of(g),  *simd::rows_of(u), *simd::rows_of(d), written(out.first), written(out.second), gate.size(-1), kind,
      simd::is_bf16(gate)};
  static const auto kernel = KF_SIMD_PICK(gate_backward);
  simd::share(simd::row_count(gate), rows_a_share(of.width),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return {at::Tensor(), out.first, out.second};
}

/// Where gradients have gradients: those of the twin.
variable_list backward_by_twin(GateKind kind, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& gradient, bool wants_gate,
                               bool wants_up) {
  const at::Tensor g = at::alias(gate), u = at::alias(up);
  variable_list wanted;
  if (wants_gate) {
    wanted.push_back(g);
  }
  if (wants_up) {
    wanted.push_back(u);
  }
  const variable_list found = torch::autograd::grad({plain_gate(kind, g, u)}, wanted, {gradient}, {}, /*create_graph=*/true);
  return {at::Tensor(), wants_gate ? found.front() : at::Tensor(), wants_up ? found.back() : at::Tensor()};
}

struct Gate : torch::autograd::Function<Gate> {
  static at::Tensor forward(AutogradContext* context, std::int64_t kind, const at::Tensor& gate, const at::Tensor& up) {
    context->save_for_backward({gate, up});
    context->saved_data["kind"] = kind;
    return by_rows(gate, up) ? forward_by_rows(static_cast<GateKind>(kind), gate, up) : at::silu(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto kind = static_cast<GateKind>(context->saved_data["kind"].toInt());
    const at::Tensor &gate = saved[0], &up = saved[1], &gradient = gradients[0];
    const bool wants_gate = context->needs_input_grad(0), wants_up = context->needs_input_grad(1);
    if (at::GradMode::is_enabled()) {
      return backward_by_twin(kind, gate, up, gradient, wants_gate, wants_up);
    }
    if (by_rows(gate, up)) {
      return backward_by_rows(kind, gate, up, gradient, room_for(gate, up, wants_gate, wants_up));
    }
    // Large results cost their fresh pages more than their arithmetic, so each is overwritten by the next.
    at::Tensor for_gate;
    if (wants_gate) {
      for_gate = gradient * up;
      at::silu_backward_out(for_gate, for_gate, gate);
    }
    return {at::Tensor(), for_gate, wants_up ? at::silu(gate).mul_(gradient) : at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_gate(GateKind kind, const at::Tensor& gate, const at::Tensor& up) {
  if (kind != GateKind::silu && !by_rows(gate, up)) {
    return plain_gate(kind, gate, up);
  }
  return Gate::apply(static_cast<std::int64_t>(kind), gate, up);
}

}  // namespace kf
