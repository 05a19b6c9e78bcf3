#pragma once
// Moments in 8 bits: numbers as places in the dynamic map (kernels/adamw/byte_map.h) or as floats of 8 bits, times a scale of their block.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace kf {

/// Of tensors that hold such numbers: in the map at::kChar with a sign, at::kByte without; as floats at::kFloat8_e4m3fn with a sign,
/// at::kFloat8_e5m2, whose range is that of squares, without. They are vectors of bytes: the fp32 scales of all blocks, then a byte a
/// number. A block's scale is its largest number, with its sign, which is at 1 in the map then (as a float: at kTop) and comes back as it
/// was: what was read and is stored again are the same numbers.
bool is_blockwise(at::ScalarType type);
/// Bytes of `numbers` numbers.
std::int64_t blockwise_bytes(std::int64_t numbers);

/// The numbers, fp32.
at::Tensor from_blockwise(const at::Tensor& stored, at::IntArrayRef sizes);
/// Puts `numbers` into `stored`, each as the nearest there is; without a sign, what is not 0 does not become 0 (m / sqrt(v) would have no
/// bound).
void to_blockwise(const at::Tensor& numbers, const at::Tensor& stored);

}  // namespace kf
