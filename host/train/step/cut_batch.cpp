#include "train/step/cut_batch.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "model/layer/visibility.h"
#include "parallel/group.h"
#include "parallel/sequence_part.h"

namespace kf {

CutBatch cut_batch(Batch whole, Group& cp, SequenceOrder order) {
  if (cp.size() == 1) {
    return {std::move(whole), nullptr};
  }
  CutBatch out;
  out.part = part_of_sequence(cp, order, whole.tokens, whole.labels, whole.doc_ids);
  out.batch = std::move(whole);
  for (at::Tensor* tensor : {&out.batch.tokens, &out.batch.labels, &out.batch.doc_ids}) {
    *tensor = own_positions(*tensor, 1, *out.part);
  }
  return out;
}

std::int64_t own_length(std::int64_t length, const Group& cp, SequenceOrder order) {
  return cp.size() == 1 ? length : SequenceCut(length, cp.size(), order).rows()[static_cast<std::size_t>(cp.rank())];
}

void tell(ForwardContext& context, const CutBatch& cut) {
  context.doc_ids = cut.batch.doc_ids;
  if (cut.part != nullptr) {
    context.positions = cut.part->positions;
    context.visible = std::make_shared<const Visibility>(cut.part);
  }
}

Share drawing_share(const World& world) {
  const Share reads = world.share();
  const Group& cp = world.along(Axis::cp);
  return {reads.rank * cp.size() + cp.rank(), reads.world * cp.size()};
}

}  // namespace kf
