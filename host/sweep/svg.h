#pragma once
// A plot as an SVG file.

#include <string>

#include "sweep/chart.h"

namespace kf::sweep {

/// 640 x 400, axes with ticks, a circle a trial whose title names it.
std::string to_svg(const Chart& chart, const std::string& objective);

}  // namespace kf::sweep
