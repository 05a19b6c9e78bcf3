#pragma once
// Context parallelism: a batch of whole sequences becomes the positions of a rank.

#include <cstdint>
#include <memory>

#include "data/sequence/batch.h"
#include "model/forward.h"
#include "parallel/sequence_cut.h"
#include "parallel/world.h"

namespace kf {

struct SequencePart;

struct CutBatch {
  Batch batch;
  std::shared_ptr<const SequencePart> part;  // what it is a part of; null for all positions
};

/// This rank's positions of `whole`, whose labels are shifted already, so that each position has its own; all of it where cp is 1.
/// `Batch::counted` stays that of the whole sequences. Throws Code::config where they are too short.
CutBatch cut_batch(Batch whole, Group& cp, SequenceOrder order);

/// How many positions that leaves of sequences of `length`: nothing is cut.
std::int64_t own_length(std::int64_t length, const Group& cp, SequenceOrder order);

/// What a forward must know of its batch: documents, and where the positions stand.
void tell(ForwardContext& context, const CutBatch& cut);

/// The ranks that draw apart (dropout): those that have other tokens.
Share drawing_share(const World& world);

}  // namespace kf
