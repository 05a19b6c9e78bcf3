#pragma once
// A part of a run, run again from its folder.

#include <functional>
#include <string>
#include <vector>

#include "app/command/reproduced_parts.h"
#include "config/tree/node.h"
#include "core/fs.h"
#include "metrics/run_result.h"
#include "run/launch.h"

namespace kf {

/// How runs are run again.
struct Reproduction {
  fs::path run;                        // the folder of the run, absolute
  fs::path to;                         // the new one, absolute
  std::string name;                    // of the run
  std::vector<std::string> overrides;  // of the user
  std::int64_t steps = 0;              // no more than that; 0: all
  config::Node products = {};          // what computed matrix products then
  Launch launch = {};
  /// Called by the leader when the folder is there, before the first step.
  std::function<void(const fs::path& dir)> opened = {};
};

/// Runs `part`, which goes on from the one before it where it is not the first. A script runs again up to the kf.run of the part: what it
/// trains before that goes into folders beside, NEW-call-1, ... Throws what goes wrong.
RunResult run_again(const Reproduction& how, const RunPart& part, bool first);

}  // namespace kf
