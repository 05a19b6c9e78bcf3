#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/gate/gate.h"
#include "kernels/gate/gate_rows.h"
#include "kernels/gated_mlp/gated_mlp.h"
#include "kernels/product/formula_gradients.h"
#include "kernels/product/product.h"
#include "kernels/product/stacked.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kGrain = 16384;  // numbers that are worth a thread

/// One half of the rows of (N, 2 F), as `part` says: 0 or 1.
simd::Rows half(const at::Tensor& both, std::int64_t part) {
  const std::int64_t width = both.size(1) / 2;
  char* const data = static_cast<char*>(both.mutable_data_ptr());
  return {data + part * width * static_cast<std::int64_t>(both.element_size()), 1, 2 * width, 0};
}

simd::Rows all_of(const at::Tensor& x) { return {x.mutable_data_ptr(), 1, x.size(1), 0}; }

/// act(gate) * up of both: (N, F).
at::Tensor gated(const at::Tensor& both, GateKind kind) {
  const std::int64_t width = both.size(1) / 2;
  at::Tensor out = at::empty({both.size(0), width}, both.options());
  const simd::GateForward of{half(both, 0), half(both, 1), all_of(out), width, kind, simd::is_bf16(both)};
  static const auto kernel = KF_SIMD_PICK(gate_forward);
  simd::share(both.size(0), std::max<std::int64_t>(1, kGrain / width),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return out;
}

/// The gradient of that -> the gradients of both: (N, 2 F).
at::Tensor gradient_of_both(const at::Tensor& both, const at::Tensor& gradient, GateKind kind) {
  const std::int64_t width = both.size(1) / 2;
  at::Tensor out = at::empty_like(both);
  const simd::GateBackward of{half(both, 0), half(both, 1), all_of(gradient), half(out, 0), half(out, 1), width, kind, simd::is_bf16(both)};
  static const auto kernel = KF_SIMD_PICK(gate_backward);
  simd::share(both.size(0), std::max<std::int64_t>(1, kGrain / width),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return out;
}

/// Both as one matrix: one product then, too, where they lie apart, so that the bits are those of weights that do not.
at::Tensor whole_of(const at::Tensor& gate, const at::Tensor& up) {
  const at::Tensor whole = stacked({gate, up});
  return whole.defined() ? whole : at::cat({gate, up});
}

struct GatedMlpNode : torch::autograd::Function<GatedMlpNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up,
                            const at::Tensor& down, std::int64_t kind) {
    const at::Tensor both = product_nt(x, whole_of(gate, up));
    context->save_for_backward({x, gate, up, down, both});  // let go behind this node's backward, other than what is in saved_data
    context->saved_data["kind"] = kind;
    return product_nt(gated(both, static_cast<GateKind>(kind)), down);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], &up = saved[2], &down = saved[3], &both = saved[4];
    const auto kind = static_cast<GateKind>(context->saved_data["kind"].toInt());
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for
      const at::Tensor y = at::linear(plain_gate(kind, at::linear(x, gate), at::linear(x, up)), down);
      variable_list again = formula_gradients(y, {x, gate, up, down}, gradients[0]);
      again.resize(5);
      return again;
    }
    const at::Tensor gradient = gradients[0].contiguous();
    variable_list out(5);
    if (context->needs_input_grad(3)) {
      out[3] = product_tn(gradient, gated(both, kind));
    }
    const at::Tensor d_both = gradient_of_both(both, product_nn(gradient, down), kind);
    if (context->needs_input_grad(0)) {
      out[0] = product_nn(d_both, whole_of(gate, up));
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
  for (const at::Tensor* weight : {&in.gate, &in.up, &in.down}) {
    if (!simd::takes(*weight) || weight->scalar_type() != in.x.scalar_type()) {
      return {};
    }
  }
  if (!simd::takes(in.x)) {
    return {};
  }
  std::vector<std::int64_t> shape = in.x.sizes().vec();
  shape.back() = in.down.size(0);
  return GatedMlpNode::apply(in.x.reshape({-1, in.x.size(-1)}), in.gate, in.up, in.down, static_cast<std::int64_t>(in.kind)).view(shape);
}

}  // namespace kf
