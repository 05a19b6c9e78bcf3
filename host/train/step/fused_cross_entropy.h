#pragma once
// The head's product and cross entropy in one: pieces of the logits are made, used and dropped, in forward alone.

#include <cstdint>

#include "train/step/loss.h"

namespace kf {

/// `chunk` positions at a time: logits = cap(scale * h W^T) in the compute type, their cross entropy and z-loss in fp32, and straight away
/// the gradients of both for h (N, C) and W (V, C), which backward only multiplies. So N V logits are never held, and nothing is computed
/// twice: three products, as without chunks. Memory: (chunk, V) fp32 a few times, and W's gradient in fp32.
/// A second backward through the same result throws Code::other.
LossTerms fused_cross_entropy(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LossFactors& factors,
                              std::int64_t chunk);

/// The same from all logits at once, by plain operators: the reference.
LossTerms plain_cross_entropy(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LossFactors& factors);

/// cap(scale * logits) as a model's head applies it.
at::Tensor shape_logits(const at::Tensor& logits, const OutputHead& head);

class FusedCrossEntropy final : public Loss {
 public:
  /// `plain` takes the reference instead of the chunks; `low` is for `sum` alone, as of CrossEntropy: a head brings its precision.
  FusedCrossEntropy(std::int64_t chunk, bool plain, bool low = false) : chunk_(chunk), plain_(plain), low_(low) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
  bool takes_hidden() const override { return true; }
  LossTerms from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                        const LossFactors& factors) const override;

 private:
  std::int64_t chunk_;
  bool plain_;
  bool low_;
};

}  // namespace kf
