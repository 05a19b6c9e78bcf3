#include "kernels/simd/tensor_rows.h"

#include <ATen/ATen.h>

namespace kf::simd {

bool takes(const at::Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.layout() == at::kStrided &&
         x.dim() > 0 && x.numel() > 0;
}

std::int64_t row_count(const at::Tensor& x) { return x.numel() / x.size(-1); }

std::optional<Rows> rows_of(const at::Tensor& x) {
  if (x.size(-1) > 1 && x.stride(-1) != 1) {
    return {};
  }
  // Dims from the last one outwards: those that run on as one go into the inner number, then those that do into the outer one.
  Rows rows{x.data_ptr(), 1, 0, 0};
  std::int64_t outer = 1;
  for (std::int64_t dim = x.dim() - 2; dim >= 0; --dim) {
    const std::int64_t size = x.size(dim), stride = x.stride(dim);
    if (size == 1) {
      continue;
    }
    if (outer == 1 && (rows.inner == 1 || stride == rows.inner * rows.inner_stride)) {
      rows.inner_stride = rows.inner == 1 ? stride : rows.inner_stride;
      rows.inner *= size;
    } else if (outer == 1 || stride == outer * rows.outer_stride) {
      rows.outer_stride = outer == 1 ? stride : rows.outer_stride;
      outer *= size;
    } else {
      return {};
    }
  }
  if (outer == 1) {  // one number says where a row is
    rows.outer_stride = rows.inner_stride;
    rows.inner = 1;
  }
  return rows;
}

at::Tensor in_rows(const at::Tensor& x) { return rows_of(x) ? x : x.contiguous(); }

}  // namespace kf::simd
