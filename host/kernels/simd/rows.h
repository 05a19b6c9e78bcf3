#pragma once
// Where the rows of a tensor lie, as kernels of rows get them: plain, since files of vector instructions see it.

#include <cstdint>

namespace kf::simd {

/// Row r begins at `data` + (r / inner) * outer_stride + (r % inner) * inner_stride numbers; inside of a row neighbours are neighbours. So
/// (B, T, H, D) may be a part of wider rows (B, T, W).
struct Rows {
  void* data = nullptr;  // fp32, or bf16 where the kernel is told so
  std::int64_t inner = 1;
  std::int64_t outer_stride = 0;
  std::int64_t inner_stride = 0;
};

}  // namespace kf::simd
