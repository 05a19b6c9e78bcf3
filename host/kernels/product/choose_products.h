#pragma once
// Which kernels compute a model's matrix products, found by trying them.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "kernels/product/product.h"

namespace kf {

/// The shape of a weight: (out, in).
struct WeightShape {
  std::int64_t out = 0, in = 0;
};

struct ProductChoice {
  Products products;
  /// What was measured, for the log: "fp32 by oneDNN (1.62 x at::mm), small by own kernels (2.10 x at::mm)"; empty where nothing was worth
  /// a choice.
  std::string reason;
};

/// Tries both kernels on products of forward and backward, of up to `rows` rows with weights of these shapes (cut to a size that takes
/// milliseconds; no more than about 50 ms in all), and takes another than at::mm where it is faster by more than a measurement's noise.
/// Small products (kSmallestChosenProduct) are a choice of their own, tried for about 1 ms. `compute` is the type of the products: fp32,
/// or bf16, whose widened operands then take the faster fp32 kernel. Other types have no choice.
ProductChoice choose_products(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType compute);

}  // namespace kf
