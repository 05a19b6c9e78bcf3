#pragma once
// What rows_simd.cpp works on: raw pointers, so that it sees no torch. All tensors are contiguous, of the same numbers.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf::simd {

struct MomentumRow {
  const void* gradient;
  float* momentum;
  float* ahead;  // written; null without Nesterov's step ahead
  float factor;  // of the gradient
  float beta;
  bool gradient_bf16;  // else fp32
};

struct MoveRow {
  void* weight;
  const float* direction;
  void* value;  // bf16 copy of the weight, written too; may be null
  float keep, rate;
  bool weight_bf16;  // else fp32
};

}  // namespace kf::simd

KF_SIMD_DECLARE(
    /// Of numbers first .. end.
    void muon_momentum(const MomentumRow& row, std::int64_t first, std::int64_t end);
    void muon_move(const MoveRow& row, std::int64_t first, std::int64_t end))
