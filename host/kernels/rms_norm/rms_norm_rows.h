#pragma once
// The norm of rows by vectors, for any set of instructions. Plain: files of vector instructions see it.

#include <cstdint>

#include "kernels/simd/isa.h"
#include "kernels/simd/rows.h"

namespace kf::simd {

/// y = h r factor with r = 1 / sqrt(mean(h^2) + eps), for h = x, or x + branch where there is one. Rows of `width` numbers, all of one
/// type.
struct NormForward {
  Rows x;
  Rows branch;          // data: null without one
  Rows h;               // written, with a branch
  Rows y;               // written
  float* inverse;       // (rows): r, written
  const float* factor;  // (width) or null
  std::int64_t width;
  float eps;
  bool bf16;  // else fp32
};

/// dx = r (g f - n mean(g f n)) for n = h r, plus what else reaches h; dfactor = sum over rows of g n.
struct NormBackward {
  Rows h;
  Rows gradient;         // of y
  Rows beside;           // what reaches h on another way; data: null for nothing
  Rows dx;               // written
  const float* inverse;  // (rows)
  const float* factor;   // (width) or null
  float* dfactor;        // (blocks of kNormBlock rows, width) sums, written; or null
  std::int64_t width;
  std::int64_t rows;
  bool bf16;
};

/// Rows that are added to one sum: as many for any number of threads, so that these give the same bits.
constexpr std::int64_t kNormBlock = 32;

}  // namespace kf::simd

KF_SIMD_DECLARE(
    /// Of rows first .. end.
    void norm_forward(const NormForward& of, std::int64_t first, std::int64_t end);
    /// Of blocks first .. end.
    void norm_backward(const NormBackward& of, std::int64_t first, std::int64_t end);
    /// out (width) = the sum of `count` rows of sums, in order; columns first .. end of it.
    void add_sums(const float* sums, std::int64_t count, std::int64_t width, float* out, std::int64_t first, std::int64_t end))
