#pragma once
// Context parallelism: a batch of whole sequences becomes the positions of a rank.

#include "data/sequence/batch.h"
#include "model/forward.h"
#include "parallel/sequence_cut.h"
#include "parallel/world.h"

namespace kf {

/// This rank's positions of `whole` (labels are shifted already, so each has its own), with `Batch::part`; `whole` itself where cp is 1.
/// Throws Code::config where the sequences are too short.
Batch cut_batch(const Batch& whole, Group& cp, SequenceOrder order);

/// What a forward must know of its batch: documents, and where the positions stand.
void tell(ForwardContext& context, const Batch& batch);

/// The ranks that draw apart (dropout): those that have other tokens.
Share drawing_share(const World& world);

}  // namespace kf
