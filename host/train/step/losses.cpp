#include "train/step/losses.h"

#include <ATen/ATen.h>

#include "data/sequence/batch.h"
#include "kernels/linear_loss/linear_loss.h"

namespace kf {

at::Tensor Loss::sum_of(const at::Tensor& logits, const Batch& batch) const { return sum(logits, batch.labels.flatten()); }

at::Tensor CrossEntropy::sum(const at::Tensor& logits, const at::Tensor& labels) const {
  return cross_entropy_sum(low_ ? logits : logits.to(at::kFloat), labels, low_);
}

at::Tensor ChunkedCrossEntropy::sum(const at::Tensor& logits, const at::Tensor& labels) const {
  at::Tensor total = at::zeros({}, logits.options().dtype(at::kFloat));
  for (std::int64_t first = 0; first < logits.size(0); first += chunk_) {
    const std::int64_t count = std::min(chunk_, logits.size(0) - first);
    total = total + CrossEntropy(low_).sum(logits.narrow(0, first, count), labels.narrow(0, first, count));
  }
  return total;
}

at::Tensor z_loss_sum(const at::Tensor& logits) { return logits.to(at::kFloat).logsumexp(-1).square().sum(); }

}  // namespace kf
