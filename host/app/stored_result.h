#pragma once
// runs/<name>/result.json: what a run that ended gave, for the script that asks for it again.

#include <optional>

#include "core/fs.h"
#include "train/run_result.h"

namespace kf {

/// Everything but the history, which is metrics.jsonl.
void store_result(const RunResult& result, const fs::path& run_dir);

/// The result with its history; nothing where none was stored, or another checkpoint than `checkpoint` was its last, or the file is damaged
/// (the log says so).
std::optional<RunResult> stored_result(const fs::path& run_dir, const fs::path& checkpoint);

}  // namespace kf
