#pragma once
// What every stage of a run knows: the request, the parts, the device, what the settings resolved to.

#include <vector>

#include "config/plan/plan.h"
#include "parallel/world.h"
#include "registry/registries.h"
#include "run/device.h"
#include "run/run.h"

namespace kf {

struct RunContext {
  const RunRequest& request;
  const Registries& registries;
  const config::Config& config;  // of the request
  double began = 0;              // when the run began, in seconds since 1970
  ComputeDevice compute;
  World world;                 // of a worker that comes and goes (Launch::worker): its own ranks
  World trainers;              // who shares an update: all of `world`, or with diloco.interval the ranks of this rank's worker
  Share share;                 // of the data, among the readers of all workers
  config::Plan plan;           // with the length that the data have, once they are open
  bool fresh = false;          // run.fresh, but for a restart (--max-restarts) of the same start
  std::vector<CodeFile> code;  // of the script, as it was when the run began; itself first, none of a job in TOML

  at::Device device() const { return compute.device; }
};

/// Opens the device, finds the other ranks and resolves the settings; says what nobody meant. Throws Code::config for what this build
/// cannot do, Code::communication for ranks that do not come.
RunContext open_run(const RunRequest& request, const Registries& registries);

}  // namespace kf
