#pragma once
// A feed-forward layer with xIELU, the activation of Apertus.

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/layer/mlp.h"

namespace kf {

/// down(act(up(x))) with act(h) = a_p h^2 + b h above 0 and a_n (e^h - 1 - h) + b h below; b = 0.5, a_p = softplus(alpha_p) and
/// a_n = b + softplus(alpha_n) are learned, one of each a layer, and start at 0.8 (Huang and Schlag 2024, arXiv 2411.13010, section 3).
class XieluMlp final : public Mlp {
 public:
  explicit XieluMlp(const MlpOptions& options);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;

 private:
  at::Tensor activate(const at::Tensor& h) const;

  TensorRanks ranks_;
  std::shared_ptr<Linear> up_, down_;
  ParameterPtr alpha_p_, alpha_n_;  // (1)
};

}  // namespace kf
