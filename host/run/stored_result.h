#pragma once
// runs/<name>/result.json: what a run that ended gave, for the script that asks for it again.

#include <string>

#include "checkpoint/state.h"
#include "core/fs.h"
#include "metrics/run_result.h"

namespace kf {

/// Everything but the history, which is metrics.jsonl. `id` is the run's.
void store_result(const RunResult& result, const std::string& id, const fs::path& run_dir);

/// The result of a run that ended at `state`, whose checkpoint lies at `checkpoint`, with its history if the run keeps one. What
/// result.json does not tell, because it is not there, damaged (the log says so) or of an earlier end, comes from the checkpoint and the
/// rows.
RunResult stored_result(const fs::path& run_dir, const fs::path& checkpoint, const CheckpointState& state, bool with_history);

/// Whether result.json says that the run is complete, at a step behind `state`, its newest checkpoint (checkpoint.on_completion = false).
bool ended_unsaved(const fs::path& run_dir, const CheckpointState& state);

}  // namespace kf
