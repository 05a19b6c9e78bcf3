#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/gated_mlp/gated_mlp.h"
#include "kernels/product/product.h"
#include "kernels/product/stacked.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Both halves of (N, 2 F).
struct Halves {
  explicit Halves(const at::Tensor& both)
      : gate(both.narrow(1, 0, both.size(1) / 2)), up(both.narrow(1, both.size(1) / 2, both.size(1) / 2)) {}
  at::Tensor gate, up;
};

/// (N, C) with gate and up (F, C) -> (N, 2 F).
at::Tensor both_products(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up) {
  if (const at::Tensor whole = stacked({gate, up}); whole.defined()) {
    return product_nt(x, whole);
  }
  const at::Tensor both = at::empty({x.size(0), gate.size(0) + up.size(0)}, x.options());
  Halves halves(both);
  product_nt_out(halves.gate, x, gate);
  product_nt_out(halves.up, x, up);
  return both;
}

struct GatedMlpNode : torch::autograd::Function<GatedMlpNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up,
                            const at::Tensor& down) {
    const at::Tensor both = both_products(x, gate, up);
    context->save_for_backward({x, gate, up, down});
    context->saved_data["both"] = both;  // neither an input nor an output: it may lie here, which keeps no graph alive
    const Halves halves(both);
    return product_nt(at::silu(halves.gate).mul_(halves.up), down);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], &up = saved[2], &down = saved[3];
    const at::Tensor both = context->saved_data["both"].toTensor();
    const at::Tensor gradient = gradients[0].contiguous();
    const Halves halves(both);
    const at::Tensor d_hidden = product_nn(gradient, down);
    const at::Tensor d_both = at::empty_like(both);
    at::Tensor hidden = at::silu(halves.gate);
    Halves d(d_both);
    at::mul_out(d.up, d_hidden, hidden);
    at::mul_out(d.gate, d_hidden, halves.up);
    at::silu_backward_out(d.gate, d.gate, halves.gate);
    hidden.mul_(halves.up);
    variable_list out(4);
    if (context->needs_input_grad(3)) {
      out[3] = product_tn(gradient, hidden);
    }
    const at::Tensor whole = stacked({gate, up});
    if (context->needs_input_grad(0)) {
      out[0] = whole.defined() ? product_nn(d_both, whole) : product_nn(d.gate.contiguous(), gate).add_(product_nn(d.up.contiguous(), up));
    }
    if (context->needs_input_grad(1) || context->needs_input_grad(2)) {
      const at::Tensor d_whole = product_tn(d_both, x);
      out[1] = d_whole.narrow(0, 0, gate.size(0));
      out[2] = d_whole.narrow(0, gate.size(0), up.size(0));
    }
    return out;
  }
};

}  // namespace

at::Tensor fused_gated_mlp(const GatedMlpInput& in) {
  const at::ScalarType type = in.x.scalar_type();
  const bool takes = in.x.is_cpu() && (type == at::kFloat || type == at::kBFloat16) && in.gate.scalar_type() == type &&
                     in.up.scalar_type() == type && in.down.scalar_type() == type;
  if (!takes) {
    return {};
  }
  std::vector<std::int64_t> shape = in.x.sizes().vec();
  shape.back() = in.down.size(0);
  return GatedMlpNode::apply(in.x.reshape({-1, in.x.size(-1)}), in.gate, in.up, in.down).view(shape);
}

}  // namespace kf
