#pragma once
// Matrices that are read by the same input and lie behind one another in memory: one product takes them all.

#include <ATen/core/Tensor.h>

namespace kf {

/// (A, C), (B, C), .. -> (A + B + .., C) of the same memory, without a gradient; undefined where they do not lie like that
/// (Parameter::next_follows says which weights do).
at::Tensor stacked(at::TensorList matrices);

}  // namespace kf
