#pragma once
// A matrix without bias: y = x W^T.

#include <ATen/core/Tensor.h>

#include "model/module.h"

namespace kf {

class Linear final : public Module {
 public:
  /// Weight (out, in), named "weight".
  Linear(std::int64_t in, std::int64_t out, Init init, Role role = Role::hidden);
  /// Over a weight that another module owns.
  explicit Linear(ParameterPtr weight);

  at::Tensor forward(const at::Tensor& x) const;  // (.., in) -> (.., out)
  const ParameterPtr& weight() const { return weight_; }

 private:
  ParameterPtr weight_;
};

/// N(0, std) for every matrix; those that write into the residual stream are scaled by 1/sqrt(2 n_layers) (GPT-2, section 2.3).
Init output_init(double std, std::int64_t n_layers);

}  // namespace kf
