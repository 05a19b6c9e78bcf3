#include "train/step/fused_cross_entropy.h"

#include <ATen/core/Tensor.h>

#include "data/sequence/batch.h"
#include "kernels/linear_loss/linear_loss.h"
#include "model/recompute/twice_differentiable.h"
#include "train/step/divided_loss.h"
#include "train/step/losses.h"

namespace kf {

static_assert(kIgnoredLabel == kIgnore);

at::Tensor FusedCrossEntropy::sum(const at::Tensor& logits, const at::Tensor& labels) const {
  return ChunkedCrossEntropy(chunk_, low_, kernels_).sum(logits, labels);
}

LossTerms FusedCrossEntropy::from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                                         const LossFactors& factors) const {
  const Kernels& kernels = TwiceDifferentiable::wanted() ? plain_kernels() : kernels_;
  const LinearLossOptions options{factors.ce, factors.z, chunk_};
  const LinearLoss loss = factors.vocabulary != nullptr ? divided_linear_loss(hidden, head, labels, options,
                                                                              /*fused=*/&kernels != &plain_kernels(), *factors.vocabulary)
                                                        : kernels.linear_loss(hidden, head, labels, options);
  LossTerms parts;
  parts.total = loss.total;
  parts.ce = loss.ce;
  parts.z_loss = loss.z;
  return parts;
}

}  // namespace kf
