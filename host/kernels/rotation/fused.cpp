#include "kernels/rotation/rotation.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Views of both members of every pair, (.., T, n/2) each.
std::pair<at::Tensor, at::Tensor> pairs_of(const at::Tensor& x, bool interleaved) {
  const std::int64_t half = x.size(-1) / 2;
  if (interleaved) {
    const at::Tensor pairs = x.unflatten(-1, {half, 2});
    return {pairs.select(-1, 0), pairs.select(-1, 1)};
  }
  return {x.narrow(-1, 0, half), x.narrow(-1, half, half)};
}

/// Turning back by the same angles undoes it, so that is the gradient; and the gradient of that is a turn again.
struct Rotation : torch::autograd::Function<Rotation> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved) {
    context->save_for_backward({cos, sin});
    context->saved_data["interleaved"] = interleaved;
    const at::Tensor from = x.to(at::promote_types(x.scalar_type(), at::kFloat));
    const at::Tensor out = at::empty_like(from);
    const auto [a, b] = pairs_of(from, interleaved);
    auto [first, second] = pairs_of(out, interleaved);
    at::mul_out(first, a, cos).addcmul_(b, sin, -1);
    at::mul_out(second, b, cos).addcmul_(a, sin);
    return out.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool interleaved = context->saved_data["interleaved"].toBool();
    return {Rotation::apply(gradients[0], saved[0], saved[1].neg(), interleaved), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved) {
  return Rotation::apply(x, cos, sin, interleaved);
}

}  // namespace kf
