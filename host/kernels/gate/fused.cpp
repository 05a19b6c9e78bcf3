#include "kernels/gate/gate.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Large results cost their fresh pages more than their arithmetic, so each is overwritten by the next. A gradient of these gradients takes
// formulas: the kernel has no derivative of its own, and nothing may be overwritten.

/// gradient * up * silu'(gate).
at::Tensor gradient_of_gate(const at::Tensor& gradient, const at::Tensor& gate, const at::Tensor& up) {
  at::Tensor out = gradient * up;
  if (at::GradMode::is_enabled()) {
    const at::Tensor s = gate.sigmoid();
    return out * s * (1 + gate * (1 - s));
  }
  return at::silu_backward_out(out, out, gate);
}

at::Tensor gradient_of_up(const at::Tensor& gradient, const at::Tensor& gate) {
  return at::GradMode::is_enabled() ? gradient * at::silu(gate) : at::silu(gate).mul_(gradient);
}

struct SiluGate : torch::autograd::Function<SiluGate> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up) {
    context->save_for_backward({gate, up});
    return at::silu(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], &gradient = gradients[0];
    at::Tensor for_gate, for_up;
    if (context->needs_input_grad(0)) {
      for_gate = gradient_of_gate(gradient, gate, up);
    }
    if (context->needs_input_grad(1)) {
      for_up = gradient_of_up(gradient, gate);
    }
    return {for_gate, for_up};
  }
};

}  // namespace

at::Tensor fused_gate(const at::Tensor& gate, const at::Tensor& up) { return SiluGate::apply(gate, up); }

}  // namespace kf
