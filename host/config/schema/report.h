#pragma once
// What is wrong with a job, every fault at once.

#include <string>
#include <vector>

#include "config/tree/node.h"

namespace kf::config {

/// One fault of a job, ready to print.
struct Problem {
  Origin origin;                    // first key concerned
  std::string message;              // "train.seq_len (4096) exceeds model.max_seq_len (2048); raise ... or lower ..."
  std::vector<Origin> others = {};  // further keys of the same rule
};

/// Every problem and warning of one loading, problems by file and line, the command line last.
struct Report {
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
};

/// All problems, "3 problems in the job" first (main puts "kf-host: " before it), each with its place and source line (see
/// docs/running.md).
std::string to_text(const Report& report);

}  // namespace kf::config
