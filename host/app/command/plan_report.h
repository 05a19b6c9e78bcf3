#pragma once
// A plan in words, and as JSON.

#include <ostream>
#include <string>

#include "config/schema/loaded.h"
#include "config/tree/node.h"
#include "plan/search.h"

namespace kf {

/// What `kf-host plan` has found out about one layout of a job.
struct PlanReport {
  const config::Loaded& loaded;
  const plan::Weights& weights;
  const plan::Gpu& gpu;
  std::int64_t world = 1;
  plan::Layout layout;
  std::vector<plan::MemoryEstimate> memory;  // by stage
  std::int64_t fullest = 0;                  // the stage that takes most
  std::vector<plan::Flow> flows;             // of a rank of the first stage
  plan::StepPlan step;
  std::vector<std::string> warnings;
};

PlanReport make_report(const config::Loaded& loaded, const plan::Weights& weights, const plan::Gpu& gpu, std::int64_t world);

void print(std::ostream& out, const PlanReport& report);
config::Node to_node(const PlanReport& report);

void print(std::ostream& out, const plan::Found& found, const plan::Gpu& gpu, std::int64_t sequences);
config::Node to_node(const plan::Found& found);

}  // namespace kf
