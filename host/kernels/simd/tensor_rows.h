#pragma once
// Tensors as kernels of rows see them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "kernels/simd/rows.h"

namespace kf::simd {

/// Whether kernels of rows compute with it: fp32 or bf16 in the memory of the CPU, and at least one number.
bool takes(const at::Tensor& x);
inline bool is_bf16(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16; }

/// How many rows there are in (.., C).
std::int64_t row_count(const at::Tensor& x);
/// The rows of x (.., C) in order; nothing where they lie otherwise than Rows can say.
std::optional<Rows> rows_of(const at::Tensor& x);
/// x, or a copy whose rows lie as Rows can say.
at::Tensor in_rows(const at::Tensor& x);

}  // namespace kf::simd
