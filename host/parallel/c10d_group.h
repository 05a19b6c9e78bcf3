#pragma once
// Groups of processes, over Gloo.

#include <memory>

#include "parallel/group.h"
#include "parallel/rendezvous.h"

namespace kf {

/// The group of all processes, for tensors on the CPU. All of them call it; one process gets a OneRank. Throws Code::communication, and
/// says which ranks did not come.
///
/// Every call carries a note of what it is, so calls that do not match are an error that says who does what. A rank that is killed ends the
/// calls of all others at once, one that stays away after the time-out; the error names it. Calls that were begun run on a thread of the
/// group's, in order; sends and receives in Gloo's.
std::unique_ptr<Group> join_processes(const Rendezvous& rendezvous);

}  // namespace kf
