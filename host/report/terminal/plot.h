#pragma once
// Series of numbers as a picture of text.

#include <cstddef>
#include <string>
#include <vector>

#include "report/terminal/printable.h"

namespace kf::report {

/// One line of the picture.
struct PlotSeries {
  std::string name;       // printable
  std::vector<double> x;  // ascending, finite
  std::vector<double> y;  // as many; gaps (columns.h) are left out
};

struct PlotOptions {
  std::string x_name = "step";
  bool log_x = false, log_y = false;
  std::size_t columns = 80;  // of the whole picture, labels included; at least 20
  std::size_t rows = 20;     // of the canvas; at least 2
  bool color = false;
};

/// The canvas between its axes, then a line a series: its mark, its name, its last value, and what cannot be drawn (nan, infinite, not
/// above 0 on a logarithmic axis). One series, or several in colours, are drawn in dots of Braille; several without colours by a letter
/// each. Of many points each column shows the smallest and the largest. Without any point that can be drawn there is no canvas.
std::string plot(const std::vector<PlotSeries>& series, const PlotOptions& options);

}  // namespace kf::report
