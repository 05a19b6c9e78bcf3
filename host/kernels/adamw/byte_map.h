#pragma once
// The dynamic map of 8 bits of Dettmers et al. 2022 ("8-bit Optimizers via Block-wise Quantization", section 1.3), as bitsandbytes makes
// it: seven decades below 1, of which each has twice the values of the one below.

#include <cstdint>

namespace kf {

struct ByteMap {
  float values[256];   // ascending, from -1 or 0 to 1
  float middles[256];  // between values[i] and values[i + 1]; infinity at the end
  bool is_signed;
};

/// `is_signed`: for first moments; 127 values below 0, 0, and 128 above. Else for second moments, 255 values above 0.
const ByteMap& byte_map(bool is_signed);

/// Floats of 8 bits hold a block's largest number as this power of two, the largest that they have: nothing is rounded by the scale then.
/// e4m3: 3 bits of fraction, down to 2^-17 of the largest; e5m2: 2 bits, down to 2^-31.
inline constexpr float kTopE4m3 = 256, kTopE5m2 = 32768;

/// Numbers that have a scale together.
inline constexpr std::int64_t kByteBlock = 256;

}  // namespace kf
