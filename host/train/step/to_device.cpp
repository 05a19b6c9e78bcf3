#include "train/step/to_device.h"

#include <ATen/ATen.h>

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
  return moved;
}

}  // namespace kf
