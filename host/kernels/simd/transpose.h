#pragma once
// A square of numbers in vectors, turned. For *_simd.cpp files alone.

#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {

/// a0 b0 a1 b1 ..
KF_SIMD_INLINE void interleave(V a, V b, V& low, V& high) {
#if defined(__AVX512F__)
  low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif defined(__AVX2__)
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

/// kLanes rows become columns.
KF_SIMD_INLINE void transpose(V (&rows)[kLanes]) {
  for (int step = kLanes; step > 1; step /= 2) {
    V next[kLanes];
    for (int i = 0; i < kLanes / 2; ++i) {
      interleave(rows[i], rows[i + kLanes / 2], next[2 * i], next[2 * i + 1]);
    }
    for (int i = 0; i < kLanes; ++i) {
      rows[i] = next[i];
    }
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
