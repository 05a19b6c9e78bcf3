#pragma once
// What the hooks of several ranks ask for becomes what all do.

#include "config/tree/node.h"
#include "parallel/group.h"
#include "train/loop/controls.h"

namespace kf {

/// The requests of all ranks, the same on each of them: a stop, an evaluation, a roll-back that any rank asks for; saves and freezing in
/// order of ranks, each once; of numbers (lr_scale, mixture, loss weights) those of the lowest rank that gives one, with a warning where
/// others give another. On one rank `mine` itself. `skip_update` is the step's own matter and stays as it is.
Controls agree(const Controls& mine, Group& all);

/// Whether any rank says so.
bool any_of(bool mine, Group& all);

}  // namespace kf
