#pragma once
// kf-host FILE --dry-run: everything that is checked before a run, without the run.

#include "run/run.h"

namespace kf {

/// Checks the job as `run_job` does (settings, files, tokenizer, what lies in its folder, memory), prints what the run would begin with,
/// and writes nothing: text that is not in the token cache yet stays so, with a line.
void dry_run(const RunRequest& request, const Registries& registries);

}  // namespace kf
