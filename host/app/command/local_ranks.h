#pragma once
// `kf-host --nproc N ...`: N processes of this program on this machine that train together.

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// Starts the program `count` times with the words `args` and waits for all of them. Rank 0 writes where this process writes; what the
/// others write appears on standard error, each line behind "[rank 1] ". Signals that stop a run are passed on. Where one rank fails, the
/// others get some seconds to say why they end, too, and are ended then. Returns the exit status: that of the rank that failed first,
/// where others failed because of it (Code::communication) the status of the cause; of a rank that a signal killed 128 + its number.
/// `restarts`: N of --max-restarts N, for what the ranks say of how to start again; 0 where nobody restarts them.
int run_local_ranks(std::int64_t count, std::int64_t restarts, const std::vector<std::string>& args);

/// Of a rank, once: the `restarts` that its launcher was told. What this process starts does not see it.
std::int64_t take_restarts_of_ranks();

/// For a rank's own start: it ends when the process that started it is gone.
void follow_launcher();

}  // namespace kf
