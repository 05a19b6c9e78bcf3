#include "train/step/look_ahead.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "parallel/sequence_part.h"

namespace kf {
namespace {

/// Of whole rows.
at::Tensor moved_labels(const at::Tensor& labels, const at::Tensor& doc_ids, std::int64_t k) {
  const std::int64_t length = labels.size(1), known = std::max<std::int64_t>(0, length - k);
  at::Tensor moved = labels.narrow(1, length - known, known);
  if (doc_ids.defined()) {
    const at::Tensor same = doc_ids.narrow(1, 0, known).eq(doc_ids.narrow(1, length - known, known));
    moved = moved.masked_fill(same.logical_not(), kIgnore);
  }
  return at::cat({moved, at::full({labels.size(0), length - known}, kIgnore, labels.options())}, 1);
}

}  // namespace

at::Tensor labels_ahead(const Batch& batch, std::int64_t k) { return moved_labels(batch.labels, batch.doc_ids, k); }

at::Tensor labels_ahead(const SequencePart& part, std::int64_t k) {
  return own_positions(moved_labels(part.labels, part.doc_ids, k), 1, part);
}

std::int64_t count_ahead(const std::vector<Batch>& batches, std::int64_t depths) {
  std::int64_t count = 0;
  for (const Batch& batch : batches) {
    for (std::int64_t k = 1; k <= depths; ++k) {
      count += labels_ahead(batch, k).ne(kIgnore).sum().item<std::int64_t>();
    }
  }
  return count;
}

}  // namespace kf
