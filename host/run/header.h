#pragma once
// The lines at the start of a run: what runs where, on what, for how long.

#include <ATen/core/Tensor.h>

#include "config/plan/plan.h"
#include "metrics/peak.h"
#include "model/model.h"
#include "optim/schedule.h"
#include "run/device.h"
#include "run/run.h"

namespace kf {

struct HeaderFacts {
  const RunRequest& request;
  const config::Config& config;
  const config::Plan& plan;
  Model& model;
  std::string data;  // what the loader says of itself
  const Schedule& schedule;
  const ComputeDevice& device;
  const Peak& peak;
  std::string memory;  // see memory_text
};

/// kf-host, job, model, data, plan, memory: on standard output, folded to the width of a terminal.
void print_header(const HeaderFacts& facts);

}  // namespace kf
