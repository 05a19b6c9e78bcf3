#pragma once
// What run.json has of one start.

#include "config/tree/node.h"
#include "run/run_record.h"

namespace kf {

/// When, how and where the run is started, of which program and on which machine; without how it ends.
config::Table start_record(const RunStart& start);

}  // namespace kf
