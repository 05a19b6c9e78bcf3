#pragma once
// Everything that is known of some runs, as one page.

#include <string>
#include <vector>

#include "core/fs.h"

namespace kf::report {

/// What `kf-host report` is given, sorted out.
struct ReportPlan {
  std::vector<fs::path> runs;              // folders, each once
  std::vector<fs::path> sweeps;            // likewise
  std::vector<std::string> problems = {};  // of what could not be looked into
};
/// Each word is a run, a sweep, or a folder with such (of a sweep's trials only those that are named themselves). Throws Code::config for
/// one that is neither.
ReportPlan plan_report(const std::vector<std::string>& words);

/// The page of them.
std::string report_html(const ReportPlan& plan);

}  // namespace kf::report
