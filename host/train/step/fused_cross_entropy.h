#pragma once
// The head's product and cross entropy in one (kernels/linear_loss/linear_loss.h) as a loss.

#include <cstdint>

#include "kernels/kernels.h"
#include "train/step/loss.h"

namespace kf {

class FusedCrossEntropy final : public Loss {
 public:
  /// What is to be differentiated twice takes the plain twin, over a divided head, too. `low` is for `sum` alone, as of CrossEntropy: a
  /// head brings its precision.
  FusedCrossEntropy(std::int64_t chunk, const Kernels& kernels, bool low = false) : chunk_(chunk), kernels_(kernels), low_(low) {}
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override;
  bool takes_hidden() const override { return true; }
  bool takes_divided_head() const override { return true; }
  LossTerms from_hidden(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels,
                        const LossFactors& factors) const override;

 private:
  std::int64_t chunk_;
  const Kernels& kernels_;
  bool low_;
};

}  // namespace kf
