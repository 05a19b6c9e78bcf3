#pragma once
// Products of fp32 matrices for which a library's call costs as much as the arithmetic: what small_simd.cpp computes.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf::simd {

/// c (rows, columns) becomes a b. In memory a is (rows, sum), or (sum, rows) where it is turned; b is (sum, columns), or (columns, sum)
/// where it is turned. Strides are between rows in memory, whose numbers are neighbours. A number of c depends on its row and column alone,
/// so parts of c are computed anywhere to the same bits.
struct SmallProduct {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  std::int64_t rows = 0, columns = 0, sum = 0;
  bool a_turned = false, b_turned = false;
};

}  // namespace kf::simd

// Few rows of a with a turned b are sums along the rows of both; everything else multiplies blocks of columns that were copied together.
KF_SIMD_DECLARE(void small_product(const SmallProduct& product))
KF_SIMD_DECLARE(void few_rows_product(const SmallProduct& product))
