#pragma once
// Rows of tokens on their way from and to experts, by vectors, for any set of instructions. Plain: files of vector instructions see it.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf::simd {

/// Of each token the sum of `each` rows, which lie anywhere, weighed or not.
struct RowSums {
  const void* const* rows;  // (tokens, each)
  const float* weights;     // likewise; null for 1
  std::int64_t each;
  void* out;  // (tokens, width), written
  std::int64_t width;
  bool bf16;  // else fp32; sums are fp32
};

/// Of each row, the sum of a b; then both are multiplied by its weight, in place.
struct WeighedRows {
  void* a;
  void* b;               // (rows, width) both
  const float* weights;  // (rows)
  float* products;       // (rows), written
  std::int64_t width;
  bool bf16;
};

}  // namespace kf::simd

KF_SIMD_DECLARE(
    /// Of tokens first .. end.
    void sum_token_rows(const RowSums& of, std::int64_t first, std::int64_t end);
    /// Of rows first .. end.
    void weigh_rows(const WeighedRows& of, std::int64_t first, std::int64_t end))
