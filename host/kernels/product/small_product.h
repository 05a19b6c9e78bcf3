#pragma once
// Products of small fp32 matrices by kernels of our own.

#include <ATen/core/Tensor.h>

namespace kf {

/// How a product reads its factors: a b^T, a b, a^T b.
enum class ProductKind { nt, nn, tn };

/// Whether the kernels take these: fp32 in the memory of the CPU, with rows whose numbers are neighbours, and a shape with which they are
/// not slower than at::mm. The caller says whether the product is small.
bool takes_small_product(const at::Tensor& a, const at::Tensor& b, ProductKind kind);

/// The product, as the operator kf::product, so that recomputation can keep what it gives. Without gradients.
at::Tensor small_product(const at::Tensor& a, const at::Tensor& b, ProductKind kind);
/// The same into `out`, whose rows' numbers are neighbours, too.
void small_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, ProductKind kind);

}  // namespace kf
