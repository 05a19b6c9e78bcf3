#pragma once
// Rotations of heads by vectors, for any set of instructions. Plain: files of vector instructions see it.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf::simd {

/// (B, H, T, D) in numbers from one to the next; D lies together.
struct HeadStrides {
  std::int64_t batch, head, position;
};

/// The first `turned` of D components of every head turn, the others are copied.
struct HeadRotation {
  const void* x;
  void* out;
  HeadStrides from, to;
  const float *cos, *sin;                    // `turned` / 2 a position
  std::int64_t angle_batch, angle_position;  // strides of both
  std::int64_t heads, positions, width, turned;
  bool interleaved;  // pairs are neighbours, else i and i + turned / 2
  bool back;         // by -angle
  bool bf16;         // else fp32
};

}  // namespace kf::simd

KF_SIMD_DECLARE(
    /// Of positions first .. end of the B * T that there are.
    void rotate_heads(const HeadRotation& of, std::int64_t first, std::int64_t end))
