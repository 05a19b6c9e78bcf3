#pragma once
// The native losses.

#include <cstdint>

#include "kernels/kernels.h"
#include "train/step/loss.h"

namespace kf {

/// As cross_entropy_sum (kernels/linear_loss/linear_loss.h); where not `low`, by the kernel, but for what is to be differentiated twice.
/// From hidden states it holds all logits once, or, of a large batch, pieces of them.
class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(bool low = false, const Kernels& kernels = fused_kernels()) : low_(low), kernels_(kernels) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
  bool takes_divided_head() const override { return true; }
  bool prefers_hidden() const override { return !low_ && &kernels_ != &plain_kernels(); }
  LossTerms from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                        const LossFactors& factors) const override;

 private:
  bool low_;
  const Kernels& kernels_;
};

/// The same number from pieces of `chunk` positions: only one piece is ever held in fp32.
class ChunkedCrossEntropy final : public Loss {
 public:
  explicit ChunkedCrossEntropy(std::int64_t chunk, bool low = false, const Kernels& kernels = fused_kernels())
      : chunk_(chunk), low_(low), kernels_(kernels) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
  bool takes_divided_head() const override { return true; }
  LossTerms from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                        const LossFactors& factors) const override;

 private:
  std::int64_t chunk_;
  bool low_;
  const Kernels& kernels_;
};

}  // namespace kf
