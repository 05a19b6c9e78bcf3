#pragma once
// Cross entropy and z-loss of logits by rows_simd.cpp, on a CPU.

#include <ATen/core/Tensor.h>

namespace kf {

/// Whether rows_simd.cpp takes them: contiguous matrices on a CPU in fp32 or bf16.
bool rows_take(const at::Tensor& products, const at::Tensor& labels);

struct RowFactors {
  double scale = 1, softcap = 0;  // logits = cap(scale * products)
  double ce = 1, z = 0;
};

/// Sums over the rows, added in their order: the same bits for any number of threads.
struct RowLoss {
  at::Tensor ce, z;  // 0-dim fp32, factors applied
  at::Tensor lse;    // (n) fp32
};

/// products (n, V), labels (n) int64. With `slopes`, which may be the products, it receives the gradient of ce + z for them.
RowLoss row_loss(const at::Tensor& products, const at::Tensor& labels, const RowFactors& factors, const at::Tensor& slopes = {});
/// That gradient alone, from the `lse` of a call before.
at::Tensor row_slopes(const at::Tensor& products, const at::Tensor& labels, const at::Tensor& lse, const RowFactors& factors);

}  // namespace kf
