#pragma once
// Every point of a space, one after the other.

#include <vector>

#include "sweep/draw.h"

namespace kf::sweep {

/// All points in order, the last parameter fastest; groups that are not chosen add nothing, functions are asked at every point.
/// Throws Code::config at the place of a distribution that has no end of values, and for more than kMaxGrid points.
std::vector<Draw> grid_points(const std::vector<Entry>& space);

inline constexpr std::size_t kMaxGrid = 100'000;

}  // namespace kf::sweep
