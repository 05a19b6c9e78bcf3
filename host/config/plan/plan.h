#pragma once
// What the settings resolved to: no "auto", no -1, no empty path left.

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/loaded.h"
#include "core/fs.h"
#include "parallel/mesh/mesh.h"

namespace kf::config {

struct Plan {
  std::string name;    // run.name, or the job file's stem
  fs::path dir;        // run.dir, or runs/<name>
  std::string device;  // "cpu" or "cuda"
  std::int64_t world = 1;
  Mesh mesh;                    // [distributed] on the world
  std::int64_t data_ranks = 1;  // ranks that see different data
  std::int64_t tokens_per_step = 0;
  std::int64_t max_steps = 0;  // from max_tokens where that is given
  fs::path checkpoint_dir;
  std::vector<std::string> sinks;  // what gets the rows, in order: metrics.sinks and what other settings add to it
  fs::path tensorboard_dir;
  fs::path trace_dir;
  std::string token_dtype;         // of raw .bin files
  std::vector<std::string> notes;  // what was derived, one line each, for the start of the log
};

/// `file` names a run that has no name. The job must have no problems on `world` ranks.
Plan make_plan(const Loaded& loaded, const fs::path& file, std::int64_t world = 1, bool gpu_present = false);

}  // namespace kf::config
