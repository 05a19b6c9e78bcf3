#include "train/step/to_device.h"

#include <ATen/ATen.h>

#include "parallel/sequence_part.h"

namespace kf {

Batch to_device(const Batch& batch, at::Device device) {
  if (device.is_cpu()) {
    return batch;
  }
  // A copy from page-locked memory (data.pin_memory) waits for nothing; one from ordinary memory for all that was begun before it.
  const auto move = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.to(device, /*non_blocking=*/true) : at::Tensor(); };
  Batch moved = batch;
  moved.tokens = move(batch.tokens);
  moved.labels = move(batch.labels);
  moved.doc_ids = move(batch.doc_ids);
  if (batch.part != nullptr) {
    SequencePart part = *batch.part;
    for (at::Tensor* tensor : {&part.positions, &part.places, &part.tokens, &part.labels, &part.doc_ids}) {
      *tensor = move(*tensor);
    }
    moved.part = std::make_shared<const SequencePart>(std::move(part));
  }
  return moved;
}

}  // namespace kf
