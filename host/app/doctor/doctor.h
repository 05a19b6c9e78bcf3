#pragma once
// `kf-host doctor`: what this machine can do for a job, and what to do about what is missing. The launcher runs it: it works without torch,
// too, which may be what is missing.

#include <functional>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

/// What the launcher knows.
struct Installation {
  fs::path home;                      // folder of the program
  std::function<std::string()> load;  // loads torch and the program; "" or why that cannot be done
};

/// `words`: what stands behind `doctor`. Prints to standard output, faults of the words to standard error; returns the exit status.
int doctor(const std::vector<std::string>& words, const Installation& installation);

}  // namespace kf
