#pragma once
// Steps that all ranks of a group take, and of which all learn how each ended.

#include <functional>
#include <string>
#include <vector>

#include "parallel/group.h"

namespace kf {

/// Calls `body` on every rank and gives what each returned, by rank. Where it throws on one, all throw once all have come here: that rank
/// its own error, the others Code::checkpoint with it, "rank 2: ..." before it. So nobody waits for a rank that has failed, and nobody
/// takes away what another one still uses. `body` makes no calls of the group.
std::vector<std::string> together(Group& group, const std::function<std::string()>& body);

}  // namespace kf
