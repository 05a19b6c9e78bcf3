#pragma once
// y = x W^T (+ b).

#include <ATen/core/Tensor.h>

#include "model/module.h"

namespace kf {

class Linear final : public Module {
 public:
  bool observable() const override { return true; }
  /// Weight (out, in), named "weight"; with `bias` a "bias" (out) that starts at 0.
  Linear(std::int64_t in, std::int64_t out, Init init, Role role = Role::hidden, bool bias = false);
  /// Over a weight that another module owns.
  explicit Linear(ParameterPtr weight);

  at::Tensor forward(const at::Tensor& x) const;  // (.., in) -> (.., out)
  const ParameterPtr& weight() const { return weight_; }
  const ParameterPtr& bias() const { return bias_; }  // null without one

 private:
  ParameterPtr weight_, bias_;
};

}  // namespace kf
