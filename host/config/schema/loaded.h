#pragma once
// A job as it was read.

#include <vector>

#include "config/schema/config.h"
#include "config/schema/report.h"
#include "config/tree/node.h"

namespace kf::config {

/// The job with origins kept.
struct Loaded {
  Config config;
  Table merged;               // the layers as one tree, with origins
  std::vector<Table> layers;  // lowest first, for `config explain`
  Report report;              // warnings only, when returned by `load_or_fail`
};

}  // namespace kf::config
