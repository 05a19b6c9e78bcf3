#include "kernels/global_norm/square_sums.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

template <class T>
float sum_of(const T* x, std::int64_t n) {
  V sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k) {
      const V v = load(x + i + k * kLanes);
      sums[k] = fma(v, v, sums[k]);
    }
  }
  for (; i < n; i += kLanes) {
    const V v = i + kLanes <= n ? load(x + i) : load_first(x + i, n - i);
    sums[0] = fma(v, v, sums[0]);
  }
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace

void square_sums(const void* numbers, bool low, std::int64_t count, std::int64_t first, std::int64_t end, float* sums) {
  for (std::int64_t block = first; block < end; ++block) {
    const std::int64_t at = block * kSquaresBlock;
    const std::int64_t n = count - at < kSquaresBlock ? count - at : kSquaresBlock;
    *sums++ = low ? sum_of(static_cast<const Bf16*>(numbers) + at, n) : sum_of(static_cast<const float*>(numbers) + at, n);
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
