#pragma once
// Matrix products with a weight W (out, in), and which kernel computes them on a CPU.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace kf {

/// Which kernels the products of this process take on a CPU. As at::linear by default; `choose_products` measures what is faster.
struct Products {
  /// fp32 through oneDNN instead of at::mm, which is MKL's product and slow on processors that are not Intel's.
  bool fp32_onednn = false;
  /// bf16 by fp32 products of the widened operands, rounded once: the sums are fp32 either way. Worth it where the processor has no bf16
  /// instructions.
  bool bf16_widened = false;
  /// Small fp32 products (kSmallestChosenProduct) by kernels of our own instead of at::mm.
  bool fp32_small = false;
  /// Small bf16 products by those of the widened operands, rounded once.
  bool bf16_small = false;
  /// Large fp32 products a^T b, the gradients of weights, by kernels of our own, too.
  bool fp32_own_tn = false;
  /// Fp32 products a b^T and a b that are not small, up to kMostOwnProduct, by kernels of our own.
  bool fp32_own = false;

  bool operator==(const Products& other) const = default;
};

/// Of the whole process, like at::Context's settings: every run sets it before its first product.
void set_products(const Products& products);
const Products& products();

/// Products of fewer multiplications are small: what oneDNN's call costs is more than it gains, and the choice is between at::mm and
/// kernels of our own.
constexpr std::int64_t kSmallestChosenProduct = std::int64_t{1} << 21;

/// Up to this many multiplications kernels of our own may be as fast as oneDNN's, which copies both factors together; beyond it its
/// copies are worth more than they cost.
constexpr std::int64_t kMostOwnProduct = std::int64_t{1} << 28;

/// x W^T (+ b): (.., in) -> (.., out), as at::linear, with gradients. `bias` (out) may be undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// a b^T of matrices (M, K), (N, K) -> (M, N); a b of (M, K), (K, N); a^T b of (K, M), (K, N). Without gradients of their own: for the
/// insides of autograd functions.
at::Tensor product_nt(const at::Tensor& a, const at::Tensor& b);
at::Tensor product_nn(const at::Tensor& a, const at::Tensor& b);
at::Tensor product_tn(const at::Tensor& a, const at::Tensor& b);

/// The same into `out`, a piece of a larger result.
void product_nt_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void product_nn_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void product_tn_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

}  // namespace kf
