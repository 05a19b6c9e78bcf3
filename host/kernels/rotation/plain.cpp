#include "kernels/rotation/rotation.h"

#include <ATen/ATen.h>

namespace kf {

at::Tensor plain_rotation(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved) {
  const std::int64_t width = 2 * cos.size(-1), rest = x.size(-1) - width;
  if (rest > 0) {
    return at::cat({plain_rotation(x.narrow(-1, 0, width), cos, sin, interleaved), x.narrow(-1, width, rest)}, -1);
  }
  // bf16 * fp32 promotes to fp32: long positions keep their angles.
  at::Tensor turned;
  if (interleaved) {
    const at::Tensor pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
    const at::Tensor a = pairs.select(-1, 0);
    const at::Tensor b = pairs.select(-1, 1);
    turned = at::stack({a * cos - b * sin, b * cos + a * sin}, -1).flatten(-2);
  } else {
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    turned = at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
  }
  return turned.to(x.scalar_type());
}

}  // namespace kf
