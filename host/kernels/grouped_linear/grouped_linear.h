#pragma once
// Every expert's matrix times its own rows.

#include <ATen/core/Tensor.h>

#include "kernels/grouped_linear/expert_rows.h"

namespace kf {

/// Row r of expert e times its matrix: rows (R, I), weight (E, O, I), bias (E, O) or undefined -> (R, O). bf16 and fp16 go through
/// at::_grouped_mm where widths allow (16-byte rows), everything else matrix by matrix on slices. An expert without rows has a zero
/// gradient.
at::Tensor fused_grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ExpertRows& rows);

}  // namespace kf
