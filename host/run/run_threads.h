#pragma once
// How many threads compute, and where.

#include <memory>
#include <string>

#include "kernels/simd/pinned.h"
#include "run/run_context.h"

namespace kf {

/// Has LibTorch compute with a thread for each physical core that this process may use (core/cores.h), unless OMP_NUM_THREADS says how
/// many.
void take_own_cores();

/// "2 threads", and on how many cores where that is another number: "1 thread on 2 cores", "8 threads on 8 cores (16 processors)".
std::string threads_text();

/// run.pin_threads: the threads of this run stay on their cores until the result ends. Processes of one machine that may use the same
/// processors share the cores out. Null where the setting is off.
std::unique_ptr<simd::PinnedThreads> pinned_threads(const RunContext& run);

}  // namespace kf
