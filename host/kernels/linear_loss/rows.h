#pragma once
// What rows_simd.cpp works on: a row of logits a position.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf {

struct LossRows {
  const void* products = nullptr;  // (n, vocabulary), contiguous; logits = cap(scale * products)
  bool low = false;                // bf16 instead of fp32
  std::int64_t vocabulary = 0;
  const std::int64_t* labels = nullptr;  // (n); below 0 it does not count
  float scale = 1;
  float softcap = 0;  // 0 for none
};

}  // namespace kf

/// Of rows first .. end: log sum exp of the logits, and -log softmax(logits)[label], 0 where it does not count.
KF_SIMD_DECLARE(void loss_rows(const ::kf::LossRows& rows, std::int64_t first, std::int64_t end, float* lse, float* losses))
/// Of rows first .. end: the gradient of ce * losses + z * lse^2 for the products, in their type; `slopes` may be the products.
KF_SIMD_DECLARE(void loss_slopes(const ::kf::LossRows& rows, std::int64_t first, std::int64_t end, const float* lse, float ce, float z,
                                 void* slopes))
