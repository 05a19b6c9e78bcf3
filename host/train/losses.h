#pragma once
// The native losses.

#include <cstdint>

#include "train/loss.h"

namespace kf {

/// -log softmax(logits)[label], summed over counted positions.
class CrossEntropy : public Loss {
 public:
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
};

/// The same number from pieces of `chunk` positions: only one piece is ever held in fp32.
class ChunkedCrossEntropy final : public Loss {
 public:
  explicit ChunkedCrossEntropy(std::int64_t chunk) : chunk_(chunk) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;

 private:
  std::int64_t chunk_;
};

}  // namespace kf
