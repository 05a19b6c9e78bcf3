#include "train/step/cut_batch.h"

#include <ATen/ATen.h>

#include "model/layer/visibility.h"
#include "parallel/group.h"
#include "parallel/sequence_part.h"

namespace kf {

Batch cut_batch(const Batch& whole, Group& cp, SequenceOrder order) {
  if (cp.size() == 1) {
    return whole;
  }
  Batch out = whole;
  out.part = part_of_sequence(cp, order, whole.tokens, whole.labels, whole.doc_ids);
  out.tokens = own_positions(whole.tokens, 1, *out.part);
  out.labels = own_positions(whole.labels, 1, *out.part);
  out.doc_ids = own_positions(whole.doc_ids, 1, *out.part);
  out.counted = out.labels.ne(kIgnore).sum().item<std::int64_t>();
  return out;
}

void tell(ForwardContext& context, const Batch& batch) {
  context.doc_ids = batch.doc_ids;
  if (batch.part != nullptr) {
    context.positions = batch.part->positions;
    context.visible = std::make_shared<const Visibility>(batch.part);
  }
}

Share drawing_share(const World& world) {
  const Share reads = world.share();
  const Group& cp = world.along(Axis::cp);
  return {reads.rank * cp.size() + cp.rank(), reads.world * cp.size()};
}

}  // namespace kf
