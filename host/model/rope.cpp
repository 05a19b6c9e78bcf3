#include "model/rope.h"

#include <ATen/ATen.h>

namespace kf {

Rope::Rope(std::int64_t head_dim, std::int64_t max_seq_len, double theta) {
  const at::Tensor exponents = at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim);  // (D/2)
  const at::Tensor frequencies = 1.0 / at::pow(at::Scalar(theta), exponents);
  const at::Tensor angles = at::outer(at::arange(max_seq_len, at::kFloat), frequencies);
  cos_ = angles.cos();
  sin_ = angles.sin();
}

at::Tensor Rope::rotate(const at::Tensor& x, std::int64_t first) const {
  const at::Tensor cos = cos_.narrow(0, first, x.size(2)).to(x.device());  // (T, D/2)
  const at::Tensor sin = sin_.narrow(0, first, x.size(2)).to(x.device());
  const std::vector<at::Tensor> halves = x.chunk(2, -1);
  // bf16 * fp32 promotes to fp32: long positions keep their angles.
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1).to(x.scalar_type());
}

}  // namespace kf
