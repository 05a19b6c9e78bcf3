#include "model/layer/linear.h"

#include <ATen/ATen.h>

#include <utility>

#include "core/error.h"
#include "kernels/product/product.h"
#include "model/observe.h"

namespace kf {

Linear::Linear(std::int64_t in, std::int64_t out, Init init, Role role, bool bias)
    : weight_(add_parameter("weight", {out, in}, std::move(init), role)),
      bias_(bias ? add_parameter("bias", {out}, Init::zeros(), Role::vector) : nullptr) {}

Linear::Linear(ParameterPtr weight) : weight_(std::move(weight)) { share_parameter("weight", weight_); }

at::Tensor Linear::forward(const at::Tensor& x) const {
  const at::Tensor y = kf::linear(x, weight_->value, bias_ ? bias_->value.to(x.scalar_type()) : at::Tensor());
  return observed(*this, x, adapter_ ? y + adapter_->delta(x) : y);
}

void Linear::split(Split how, std::int64_t unit) {
  weight_->split = how;
  weight_->split_unit = unit;
  if (bias_) {  // what is added once, after the sum over parts of the inputs, is whole
    bias_->split = how == Split::rowwise ? Split::replicate : how;
    bias_->split_unit = how == Split::rowwise ? 1 : unit;
  }
}

void Linear::attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter) {
  KF_CHECK(!adapter_, Code::other, "a linear layer takes one adapter, and this one has one already");
  adapter_ = add_child(name, std::move(adapter));
  adapter_->split(weight_->split, weight_->split_unit);
}

}  // namespace kf
