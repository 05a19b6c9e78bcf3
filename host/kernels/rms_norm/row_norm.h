#pragma once
// The norm by rows, for tensors: what the functions of the graph in fused.cpp are made of.

#include <ATen/core/Tensor.h>

namespace kf {

/// Whether x (and `branch`, of its type and shape, where defined) has rows that the vectors' norm takes, and `factor` fits.
bool norms_by_rows(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor);

struct RowNorm {
  at::Tensor sum;      // x + branch; undefined without one
  at::Tensor norm;     // (.., C)
  at::Tensor inverse;  // (rows) fp32, 1 / rms
};
RowNorm row_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps);

struct RowNormGradients {
  at::Tensor x;       // with what `beside` adds to it; undefined if not wanted
  at::Tensor factor;  // likewise
};
/// Of the norm of h, given the gradient of that and, where defined, what else reaches h.
RowNormGradients row_norm_gradients(const at::Tensor& h, const at::Tensor& gradient, const at::Tensor& beside, const at::Tensor& inverse,
                                    const at::Tensor& factor, bool wants_x, bool wants_factor);

/// (C): the sum of all rows of `sums` (blocks, C) fp32, in order, whatever the number of threads.
at::Tensor sum_of_rows(const at::Tensor& sums);

}  // namespace kf
