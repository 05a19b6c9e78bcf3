#pragma once
// The norm of rows with their mean taken away, by vectors, for any set of instructions. Plain: files of vector instructions see it.

#include <cstdint>

#include "kernels/simd/isa.h"
#include "kernels/simd/rows.h"

namespace kf::simd {

/// What a row was normed by.
struct RowStatistics {
  float mean;
  float inverse;  // 1 / sqrt(var + eps)
};

/// y = n factor + bias with n = (h - mean) inverse, for h = x, or x + branch where there is one. Rows of `width` numbers, all of one type.
struct LayerNormForward {
  Rows x;
  Rows branch;                // data: null without one
  Rows h;                     // written, with a branch
  Rows y;                     // written
  RowStatistics* statistics;  // (rows), written
  const float* factor;        // (width) or null
  const float* bias;          // (width) or null
  std::int64_t width;
  float eps;
  bool bf16;  // else fp32
};

/// dx = inverse (g f - mean(g f) - n mean(g f n)), plus what else reaches h; dfactor = sum over rows of g n, dbias = that of g.
struct LayerNormBackward {
  Rows h;
  Rows gradient;  // of y
  Rows beside;    // what reaches h on another way; data: null for nothing
  Rows dx;        // written; data: null where it is not wanted
  const RowStatistics* statistics;
  const float* factor;  // (width) or null
  float* dfactor;       // (blocks of kLayerNormBlock rows, width) sums, written; or null
  float* dbias;         // likewise
  std::int64_t width;
  std::int64_t rows;
  bool bf16;
};

/// Rows that are added to one sum: as many for any number of threads, so that these give the same bits.
constexpr std::int64_t kLayerNormBlock = 32;

}  // namespace kf::simd

KF_SIMD_DECLARE(
    /// Of rows first .. end.
    void layer_norm_forward(const LayerNormForward& of, std::int64_t first, std::int64_t end);
    /// Of blocks first .. end.
    void layer_norm_backward(const LayerNormBackward& of, std::int64_t first, std::int64_t end))
