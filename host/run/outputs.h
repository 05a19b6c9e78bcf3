#pragma once
// Where the numbers of a run go: the sinks of the plan.

#include <cstdint>
#include <optional>

#include "checkpoint/state.h"
#include "core/fs.h"
#include "metrics/sinks.h"
#include "run/run_context.h"

namespace kf {

struct Outputs {
  double seconds_before = 0;  // that earlier processes of the run trained
  Sinks sinks;                // not yet begun: the loop gives them their states first
};

/// `completed`: steps of the run that goes on, or nothing for a new one, whose folder may hold rows of an earlier run: they are kept aside.
/// The leader writes; the others have none.
Outputs open_outputs(const RunContext& run, std::optional<std::int64_t> completed);

/// What the last checkpoint of a complete run holds of rows that the disk did not take: written now, or a warning.
void write_late_rows(const RunContext& run, const CheckpointState& state);

/// metrics.jsonl, where this run writes it: what an earlier part of the run has left otherwise is no history of all of it.
std::optional<fs::path> rows_of(const RunContext& run);

}  // namespace kf
