#pragma once
// What of a model that several ranks train each of them writes.

#include "checkpoint/writer.h"
#include "model/model.h"
#include "parallel/world.h"

namespace kf {

/// Takes out of this rank's snapshot what another rank writes, so that together they have every tensor once: replicas write nothing, what
/// lies whole on every rank is the first one's, and so is what an optimizer keeps of a weight besides tensors of its shape (counters of
/// steps): it is that of the first rank with a part of the weight. Numbers of the optimizer that ranks have of different weights become
/// those of all. Workers of DiLoCo each write what is their own, under names that say whose it is (optim/diloco.h). Called by all ranks.
void keep_own_pieces(Snapshot& snapshot, Model& model, const World& world);

}  // namespace kf
