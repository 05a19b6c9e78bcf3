#include "kernels/rotation/rotation.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "kernels/rotation/rotation_rows.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kGrain = 32768;  // numbers that are worth a thread

struct Turn {
  bool interleaved;
  bool back;  // by -angle
};

/// What is -1 or more dims from the end of x, and 1 or 0 where x has no such dim.
std::int64_t size_of(const at::Tensor& x, std::int64_t dim) { return x.dim() >= -dim ? x.size(dim) : 1; }
std::int64_t stride_of(const at::Tensor& x, std::int64_t dim) { return x.dim() >= -dim && x.size(dim) > 1 ? x.stride(dim) : 0; }

simd::HeadStrides strides_of(const at::Tensor& x) { return {stride_of(x, -4), stride_of(x, -3), stride_of(x, -2)}; }

bool by_rows(const at::Tensor& x, const at::Tensor& cos) {
  return simd::takes(x) && x.dim() >= 2 && x.dim() <= 4 && cos.device().is_cpu() && cos.scalar_type() == at::kFloat &&
         (cos.dim() == 2 || (cos.dim() == 4 && x.dim() == 4 && cos.size(1) == 1));
}

at::Tensor turned_by_rows(const at::Tensor& given, const at::Tensor& cos, const at::Tensor& sin, const Turn& turn) {
  const at::Tensor x = given.stride(-1) == 1 || given.size(-1) == 1 ? given : given.contiguous();
  const at::Tensor c = cos.contiguous(), s = sin.contiguous();  // tables are so already
  at::Tensor out = x.dim() == 4 ? at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2)
                                : at::empty(x.sizes(), x.options());
  const std::int64_t batch = size_of(x, -4), heads = size_of(x, -3), positions = x.size(-2), width = x.size(-1);
  const simd::HeadRotation of{x.const_data_ptr(),
                              out.mutable_data_ptr(),
                              strides_of(x),
                              strides_of(out),
                              c.const_data_ptr<float>(),
                              s.const_data_ptr<float>(),
                              stride_of(c, -4),
                              stride_of(c, -2),
                              heads,
                              positions,
                              width,
                              2 * c.size(-1),
                              turn.interleaved,
                              turn.back,
                              simd::is_bf16(x)};
  static const auto kernel = KF_SIMD_PICK(rotate_heads);
  simd::share(batch * positions, std::max<std::int64_t>(1, kGrain / (heads * width)),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return out;
}

/// Views of both members of every pair, (.., T, n/2) each.
std::pair<at::Tensor, at::Tensor> pairs_of(const at::Tensor& x, std::int64_t half, bool interleaved) {
  if (interleaved) {
    const at::Tensor pairs = x.narrow(-1, 0, 2 * half).unflatten(-1, {half, 2});
    return {pairs.select(-1, 0), pairs.select(-1, 1)};
  }
  return {x.narrow(-1, 0, half), x.narrow(-1, half, half)};
}

at::Tensor turned(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, const Turn& turn) {
  const at::Tensor from = x.to(at::promote_types(x.scalar_type(), at::kFloat));
  const std::int64_t half = cos.size(-1), rest = x.size(-1) - 2 * half, sign = turn.back ? -1 : 1;
  const at::Tensor out = at::empty_like(from);
  const auto [a, b] = pairs_of(from, half, turn.interleaved);
  auto [first, second] = pairs_of(out, half, turn.interleaved);
  at::mul_out(first, a, cos).addcmul_(b, sin, -sign);
  at::mul_out(second, b, cos).addcmul_(a, sin, sign);
  if (rest > 0) {
    out.narrow(-1, 2 * half, rest).copy_(from.narrow(-1, 2 * half, rest));
  }
  return out.to(x.scalar_type());
}

/// Turning back by the same angles undoes it, so that is the gradient; and the gradient of that is a turn again.
struct Rotation : torch::autograd::Function<Rotation> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved,
                            bool back) {
    context->save_for_backward({cos, sin});
    context->saved_data["interleaved"] = interleaved;
    context->saved_data["back"] = back;
    const Turn turn{interleaved, back};
    return by_rows(x, cos) ? turned_by_rows(x, cos, sin, turn) : turned(x, cos, sin, turn);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool interleaved = context->saved_data["interleaved"].toBool(), back = context->saved_data["back"].toBool();
    return {Rotation::apply(gradients[0], saved[0], saved[1], interleaved, !back), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved) {
  return Rotation::apply(x, cos, sin, interleaved, false);
}

}  // namespace kf
