#pragma once
// What must be run to have a run again: its starts, as far as what they trained was kept.

#include <cstdint>
#include <vector>

#include "core/fs.h"
#include "report/read/run_record.h"

namespace kf {

/// A stretch of steps under one job.
struct RunPart {
  fs::path job;            // resolved, in the run's folder
  std::size_t start = 0;   // number of the start, from 1
  std::int64_t first = 0;  // completed steps before it
  std::int64_t end = 0;    // behind its last step; 0: as far as the job goes
  std::int64_t call = 0;   // which kf.run of the script it was; 0: none
};

/// In order. Starts that went on with the same settings, but for those that move no number, are one part; what a later start did again is
/// that start's. Throws Code::other where the folder lacks a job.
std::vector<RunPart> parts_of(const fs::path& run, const report::Record& record);

}  // namespace kf
