#pragma once
// Draws by element: each number is a function of a key and of its place in the whole tensor, so any part can be drawn alone, in any order
// and on any number of threads.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "model/placement.h"

namespace kf {

using PhiloxWords = std::array<std::uint32_t, 4>;

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"); the key's low word comes first.
PhiloxWords philox(PhiloxWords counter, std::uint64_t key);

/// The normal deviate below which 0.5 + q of all lie: PPND16 of Wichura's AS 241 (1988), for |q| <= 0.5 - 2^-33. Additions, products,
/// quotients and roots alone, which every processor rounds alike; the mathematical library's logarithm is not one of them.
double normal_deviate(double q);

/// Fills `part` (fp32, on the CPU, contiguous), the part that `range` takes of a tensor of the shape `whole`, with draws of N(0, std).
/// Element i of the whole takes word i % 4 of the block i / 4: 32 bits, so no draw is beyond 6.34 deviations, and one in four billion would
/// be. Each is rounded once, from double.
void fill_normal(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, double std);
/// The same for a normal cut at two deviations, widened so that what is left has deviation `std`.
void fill_truncated(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, double std);
/// The same for U(-bound, bound).
void fill_uniform(const at::Tensor& part, const Shape& whole, const Range& range, std::uint64_t key, double bound);

}  // namespace kf
