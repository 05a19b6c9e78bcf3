#pragma once
// The native losses.

#include <cstdint>

#include "train/step/loss.h"

namespace kf {

/// As cross_entropy_sum (kernels/linear_loss/linear_loss.h).
class CrossEntropy : public Loss {
 public:
  explicit CrossEntropy(bool low = false) : low_(low) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
  bool takes_divided_head() const override { return true; }
  LossTerms from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                        const LossFactors& factors) const override;

 private:
  bool low_;
};

/// The same number from pieces of `chunk` positions: only one piece is ever held in fp32.
class ChunkedCrossEntropy final : public Loss {
 public:
  explicit ChunkedCrossEntropy(std::int64_t chunk, bool low = false) : chunk_(chunk), low_(low) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
  bool takes_divided_head() const override { return true; }
  LossTerms from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                        const LossFactors& factors) const override;

 private:
  std::int64_t chunk_;
  bool low_;
};

}  // namespace kf
