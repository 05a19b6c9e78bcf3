#include "train/step/losses.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "config/plan/activation_bytes.h"
#include "data/sequence/batch.h"
#include "kernels/linear_loss/linear_loss.h"
#include "model/recompute/twice_differentiable.h"
#include "train/step/divided_loss.h"

namespace kf {

at::Tensor Loss::sum_of(const at::Tensor& logits, const Batch& batch) const { return sum(logits, batch.labels.flatten()); }

at::Tensor CrossEntropy::sum(const at::Tensor& logits, const at::Tensor& labels) const {
  if (low_) {
    return cross_entropy_sum(logits, labels, low_);
  }
  return (TwiceDifferentiable::wanted() ? plain_kernels() : kernels_).cross_entropy(logits, labels);
}

namespace {

/// Of a divided head, `chunk` positions at a time.
LossTerms divided_terms(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LossFactors& factors,
                        std::int64_t chunk) {
  LossTerms out;
  for (std::int64_t first = 0; first < hidden.size(0); first += chunk) {
    const std::int64_t count = std::min(chunk, hidden.size(0) - first);
    const LinearLoss piece = divided_linear_loss(hidden.narrow(0, first, count), head, labels.narrow(0, first, count),
                                                 {factors.ce, factors.z, count}, /*fused=*/false, *factors.vocabulary);
    out.total = out.total.defined() ? out.total + piece.total : piece.total;
    out.ce = out.ce.defined() ? out.ce + piece.ce : piece.ce;
    out.z_loss = out.z_loss.defined() ? out.z_loss + piece.z : piece.z;
  }
  return out;
}

}  // namespace

LossTerms CrossEntropy::from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                                    const LossFactors& factors) const {
  if (factors.vocabulary == nullptr) {
    const std::int64_t chunk = std::max<std::int64_t>(1, config::kLogitsAtOnce / head.weight.size(0));
    const LinearLoss loss =
        (TwiceDifferentiable::wanted() ? plain_kernels() : kernels_).linear_loss(hidden, head, labels, {factors.ce, factors.z, chunk});
    LossTerms parts;
    parts.total = loss.total;
    parts.ce = loss.ce;
    parts.z_loss = loss.z;
    return parts;
  }
  return divided_terms(hidden, head, labels, factors, hidden.size(0));
}

LossTerms ChunkedCrossEntropy::from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                                           const LossFactors& factors) const {
  return divided_terms(hidden, head, labels, factors, chunk_);
}

at::Tensor ChunkedCrossEntropy::sum(const at::Tensor& logits, const at::Tensor& labels) const {
  if (logits.is_cpu() && !low_ && &kernels_ != &plain_kernels()) {
    return CrossEntropy(low_, kernels_).sum(logits, labels);  // the kernel holds no row in fp32
  }
  at::Tensor total = at::zeros({}, logits.options().dtype(at::kFloat));
  for (std::int64_t first = 0; first < logits.size(0); first += chunk_) {
    const std::int64_t count = std::min(chunk_, logits.size(0) - first);
    total = total + CrossEntropy(low_, kernels_).sum(logits.narrow(0, first, count), labels.narrow(0, first, count));
  }
  return total;
}

at::Tensor z_loss_sum(const at::Tensor& logits) { return logits.to(at::kFloat).logsumexp(-1).square().sum(); }

}  // namespace kf
