#pragma once
// The objective against each parameter: the numbers behind the plots, and the plots as text.

#include <string>
#include <vector>

#include "sweep/trial.h"

namespace kf::sweep {

/// One parameter's plot.
struct Chart {
  struct Point {
    double x = 0;  // stored value; of a choice the index
    double y = 0;  // objective; of a pruned trial its last report
    bool pruned = false;
    bool best = false;
    std::int64_t trial = 0;
  };

  std::string name;
  bool log = false;                 // of x
  std::vector<std::string> labels;  // of a choice
  double x_low = 0;
  double x_high = 0;
  double y_low = 0;  // values beyond are drawn at the edge: one diverged trial must not flatten all others
  double y_high = 0;
  std::vector<Point> points;

  /// 0 to 1 along the axis.
  double across(double x) const;
  double up(double y) const;
};

/// One a parameter, in the order of the space; parameters that never varied are left out.
std::vector<Chart> charts(const std::vector<Trial>& trials, bool maximise);

/// About 15 lines: `o` complete, `.` pruned, `*` the best, `^` and `v` beyond the edge.
std::string text_plot(const Chart& chart, const std::string& objective);

}  // namespace kf::sweep
