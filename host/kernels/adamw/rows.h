#pragma once
// What rows_simd.cpp works on: raw pointers, so that it sees no torch.

#include <cstdint>

#include "kernels/adamw/byte_map.h"
#include "kernels/simd/isa.h"

namespace kf {

/// How numbers lie in memory; the last three as of kernels/adamw/blockwise.h: in a map, with a sign, without.
enum class Stored : std::uint8_t { fp32, bf16, bytes, e4m3, e5m2 };

/// One weight: all tensors contiguous, of the same numbers.
struct AdamWRow {
  void* weight = nullptr;
  const void* gradient = nullptr;
  void* m = nullptr;
  void* v = nullptr;
  void* value = nullptr;  // bf16 copy of the weight, written too; may be null
  std::int64_t numbers = 0;
  Stored weight_as = Stored::fp32, gradient_as = Stored::fp32, m_as = Stored::fp32, v_as = Stored::fp32;
  float keep = 1;                   // of the weight: 1 - lr * weight_decay
  float of_m = 0, of_gradient = 0;  // what both count in the numerator: lr and the corrections of their bias
  float of_v = 1;                   // correction of v
};

struct AdamWRates {
  float factor = 1;            // of gradients
  float new_m = 0;             // 1 - beta1
  float beta2 = 0, new_v = 0;  // new_v: 1 - beta2
  float eps = 0, eps_root = 0;
  const ByteMap* map_m = nullptr;  // of moments in bytes
  const ByteMap* map_v = nullptr;
};

/// Numbers that are worked on together, and between which threads divide a weight.
inline constexpr std::int64_t kAdamWBlock = kByteBlock;

}  // namespace kf

/// Blocks first .. end of `row`.
KF_SIMD_DECLARE(void adamw_blocks(const ::kf::AdamWRow& row, const ::kf::AdamWRates& rates, std::int64_t first, std::int64_t end))
