#pragma once
// What rows_simd.cpp works on: raw pointers, so that it sees no torch.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf {

/// One weight: all tensors contiguous, of the same numbers.
struct LionRow {
  void* weight = nullptr;
  const void* gradient = nullptr;
  float* m = nullptr;
  void* value = nullptr;  // bf16 copy of the weight, written too; may be null
  std::int64_t numbers = 0;
  bool weight_bf16 = false, gradient_bf16 = false;  // else fp32
};

struct LionRates {
  float factor = 1;           // of gradients
  float beta1 = 0, new1 = 0;  // new1: 1 - beta1
  float beta2 = 0, new2 = 0;  // new2: 1 - beta2
  float keep = 1;             // of the weight: 1 - lr * weight_decay
  float lr = 0;
};

/// Numbers between which threads divide a weight.
inline constexpr std::int64_t kLionBlock = 256;

}  // namespace kf

/// Blocks first .. end of `row`.
KF_SIMD_DECLARE(void lion_blocks(const ::kf::LionRow& row, const ::kf::LionRates& rates, std::int64_t first, std::int64_t end))
