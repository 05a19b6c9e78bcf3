#include "model/fused_gate.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// gradient * silu'(gate). The kernel has no derivative of its own, so a gradient of this gradient takes the formula.
at::Tensor slope(const at::Tensor& gradient, const at::Tensor& gate) {
  if (!at::GradMode::is_enabled()) {
    return at::silu_backward(gradient, gate);
  }
  const at::Tensor s = gate.sigmoid();
  return gradient * s * (1 + gate * (1 - s));
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
      for_gate = slope(gradient * up, gate);
    }
    if (context->needs_input_grad(1)) {
      for_up = gradient * at::silu(gate);
    }
    return {for_gate, for_up};
  }
};

}  // namespace

at::Tensor fused_silu_gate(const at::Tensor& gate, const at::Tensor& up) { return SiluGate::apply(gate, up); }

}  // namespace kf
