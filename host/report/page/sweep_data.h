#pragma once
// Sweeps on a page.

#include <string>
#include <vector>

#include "core/fs.h"
#include "report/page/json_writer.h"

namespace kf::report {

/// Whether `folder` is that of a sweep: it holds a store.
bool is_sweep(const fs::path& folder);
/// The sweep whose trial `run` is; empty for a run of its own.
fs::path sweep_of(const fs::path& run);

/// "sweeps": [...], as `write_sweep` writes them. What cannot be read is left out and said in `problems`.
void write_sweeps(JsonWriter& json, const std::vector<fs::path>& folders, std::vector<std::string>& problems);

/// An object: name, objective, direction, parameters with their ranges, trials, how much each parameter matters. Throws what goes wrong
/// with the store.
void write_sweep(JsonWriter& json, const fs::path& folder);

}  // namespace kf::report
