#pragma once
// What hooks and messages on several ranks ask for becomes what all do.

#include <vector>

#include "parallel/group.h"
#include "train/loop/controls.h"
#include "train/loop/inbox.h"

namespace kf {

/// What a rank brings to a step boundary: what its hooks ask for, and what has come from outside.
struct Requests {
  Controls controls;
  std::vector<RunMessage> messages;
};

/// The requests of all ranks, the same on each of them: a stop, an evaluation, a roll-back that any rank asks for; messages, saves, exports
/// and freezing in order of ranks, the latter each once; of numbers (lr_scale, mixture, loss weights) those of the lowest rank that gives
/// one, with a warning where others give another. On one rank `mine` itself. `skip_update` is the step's own matter and stays as it is.
Requests agree(Requests mine, Group& all);

/// Whether any rank says so.
bool any_of(bool mine, Group& all);

}  // namespace kf
