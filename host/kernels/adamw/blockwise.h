#pragma once
// Moments in 8 bits: numbers as places in the dynamic map, times a scale of their block (kernels/adamw/byte_map.h).

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace kf {

/// Of tensors that hold such numbers: at::kChar with a sign, at::kByte without. They are vectors of bytes: the fp32 scales of all blocks,
/// then a byte a number. A block's scale is its largest number, with its sign, which is at 1 in the map then and comes back as it was: what
/// was read and is stored again becomes the same bytes.
bool is_blockwise(at::ScalarType type);
/// Bytes of `numbers` numbers.
std::int64_t blockwise_bytes(std::int64_t numbers);

/// The numbers, fp32.
at::Tensor from_blockwise(const at::Tensor& stored, at::IntArrayRef sizes);
/// Puts `numbers` into `stored`, each as the nearest of the map; without a sign, what is not 0 does not become 0 (m / sqrt(v) would have no
/// bound).
void to_blockwise(const at::Tensor& numbers, const at::Tensor& stored);

}  // namespace kf
