#pragma once
// Fewer points for a picture, without hiding anything that a pixel would show.

#include <cstddef>
#include <span>
#include <vector>

namespace kf::report {

/// Indices of the points that are kept, ascending: where there are more than 2 * `buckets`, of each of so many equal stretches of x the
/// smallest and the largest y, the first y that is nan or infinite, and the very first and last point of all. Gaps are left out. `x`
/// ascends and is finite, `buckets` >= 1. For a logarithmic axis give the logarithms.
std::vector<std::size_t> thinned(std::span<const double> x, std::span<const double> y, std::size_t buckets);

}  // namespace kf::report
