#pragma once
// What a sweep leaves in its folder besides the store: trials.csv and the plots.

#include <string>
#include <vector>

#include "core/fs.h"
#include "sweep/trial.h"

namespace kf::sweep {

/// One line a trial (RFC 4180): number, state, value, a column a parameter, a column for each setting that adjust changed, when it
/// started, seconds, error. Numbers read back to the same double.
std::string csv_text(const std::vector<Trial>& trials);

/// Writes plots/<parameter>.svg for each parameter; returns their paths.
std::vector<fs::path> write_plots(const fs::path& dir, const std::vector<Trial>& trials, bool maximise, const std::string& objective);

}  // namespace kf::sweep
