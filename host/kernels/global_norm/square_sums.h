#pragma once
// What square_sums_simd.cpp works on.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf {

/// Numbers whose squares are added in fp32; the sums of such blocks are added in double.
inline constexpr std::int64_t kSquaresBlock = 4096;

}  // namespace kf

/// Of blocks first .. end of `numbers`, bf16 where `low` and else fp32: one sum a block, from sums[0] on.
KF_SIMD_DECLARE(void square_sums(const void* numbers, bool low, std::int64_t count, std::int64_t first, std::int64_t end, float* sums))
