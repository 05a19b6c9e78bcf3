#pragma once
// N ranks in one process, for tests: threads instead of processes, and the same bits.

#include <cstdint>
#include <functional>

namespace kf {

class Group;

/// Calls `body` on `ranks` threads at once, each with its place in the group of all, and returns when all have returned. A rank that throws
/// ends the others (their waits throw an Error with its message), and what it threw is thrown here, with "rank 2: " before the message; of
/// several, the lowest rank's. Calls that do not match, and ranks that all wait for each other or for one that has returned, are errors,
/// too, which say who does what. There is no time-out: nothing can be lost between threads.
void run_ranks(std::int64_t ranks, const std::function<void(Group& all)>& body);

}  // namespace kf
