#pragma once
// Trials as text: rows, tables, the live view of a sweep.

#include <iosfwd>
#include <string>
#include <vector>

#include "sweep/trial.h"

namespace kf::sweep {

/// Six digits at most: 3.12457, 0.00123, inf.
std::string short_number(double value);
std::string short_value(const config::Node& value);

/// "40 trials: 12 complete, 26 pruned, 2 failed".
std::string summary(const std::vector<Trial>& trials);

/// The best `rows` trials (0: all) with their parameters, best first, then pruned, running, waiting and failed ones.
std::string trials_table(const std::vector<Trial>& trials, bool maximise, std::size_t rows = 0);

/// What a worker shows while it runs: on a terminal a block that is drawn anew, in a file or pipe a line for each trial that ends.
class LiveView {
 public:
  /// `columns` 0: plain lines.
  LiveView(std::ostream& out, bool maximise, int columns);
  void update(const std::vector<Trial>& trials);

 private:
  void print_new(const std::vector<Trial>& trials);
  void redraw(const std::vector<Trial>& trials);

  std::ostream& out_;
  bool maximise_;
  int columns_;
  std::vector<bool> said_;  // by number
  std::size_t drawn_ = 0;   // lines
  bool first_ = true;
};

}  // namespace kf::sweep
