#include "train/step/look_ahead.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace kf {

at::Tensor labels_ahead(const Batch& batch, std::int64_t k) {
  const std::int64_t length = batch.labels.size(1), known = std::max<std::int64_t>(0, length - k);
  at::Tensor moved = batch.labels.narrow(1, length - known, known);
  if (batch.doc_ids.defined()) {
    const at::Tensor same = batch.doc_ids.narrow(1, 0, known).eq(batch.doc_ids.narrow(1, length - known, known));
    moved = moved.masked_fill(same.logical_not(), kIgnore);
  }
  return at::cat({moved, at::full({batch.labels.size(0), length - known}, kIgnore, batch.labels.options())}, 1);
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
