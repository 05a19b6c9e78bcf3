#include "model/layer/linear.h"

#include <ATen/ATen.h>

#include <utility>

#include "kernels/product.h"
#include "model/observe.h"

namespace kf {

Linear::Linear(std::int64_t in, std::int64_t out, Init init, Role role, bool bias)
    : weight_(add_parameter("weight", {out, in}, init, role)),
      bias_(bias ? add_parameter("bias", {out}, Init::zeros(), Role::vector) : nullptr) {}

Linear::Linear(ParameterPtr weight) : weight_(std::move(weight)) { share_parameter("weight", weight_); }

at::Tensor Linear::forward(const at::Tensor& x) const {
  return observed(*this, x, kf::linear(x, weight_->value, bias_ ? bias_->value.to(x.scalar_type()) : at::Tensor()));
}

}  // namespace kf
