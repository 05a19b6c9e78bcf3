#pragma once
// `kf-host --max-restarts N ...`: a process that starts the program again when the machine ends it.

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// Starts the program with the words `args` and, at most `most` times, once more where a signal killed it (a crash, the kernel for want of
/// memory), another rank was lost (Code::communication) or the machine failed it (Code::machine): the run goes on from its last checkpoint.
/// Errors of the job itself, a stop by a signal from outside and a good end are final. Before each restart it waits, twice as long each
/// time, at most `longest_pause` seconds; a process that trained for long begins the waits anew. Signals that stop a run are passed on.
/// Returns the last exit status, of a process that a signal killed 128 + its number.
int run_with_restarts(std::int64_t most, std::int64_t longest_pause, const std::vector<std::string>& args);

/// For a process that may have been started so: it ends when the one that watches it is gone. Gives N of --max-restarts N, 0 where nobody
/// watches.
std::int64_t follow_watcher();

}  // namespace kf
