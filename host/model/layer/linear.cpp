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

at::Tensor Linear::product(const at::Tensor& x) const {
  at::Tensor bias = bias_ ? bias_->value.to(x.scalar_type()) : at::Tensor();
  if (bias.defined() && weight_->split == Split::rowwise && ranks_.rank() > 0) {
    bias = bias * 0;  // the first rank adds it; graphs have one shape on all
  }
  const at::Tensor y = kf::linear(x, weight_->value, bias);
  return adapter_ ? y + adapter_->delta(x) : y;
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  if (!stands_alone_) {
    return observed(*this, x, product(x));
  }
  const bool outputs = weight_->split == Split::colwise;
  const at::Tensor y = product(outputs ? ranks_.shared(x) : ranks_.part_of(x));
  return observed(*this, x, outputs ? ranks_.joined(y) : ranks_.summed(y));
}

void Linear::split(Split how, std::int64_t unit, const TensorRanks& ranks) {
  ranks_ = ranks;
  weight_->split = how;
  weight_->split_unit = unit;
  if (bias_) {  // of a sum over parts of the inputs, one rank adds it: whole, and its gradient is there alone
    bias_->split = how == Split::rowwise ? Split::sequence : how;
    bias_->split_unit = how == Split::rowwise ? 1 : unit;
  }
}

void Linear::stand_alone(const TensorRanks& ranks) {
  split(weight_->split, weight_->split_unit, ranks);
  stands_alone_ = ranks.many() && (weight_->split == Split::colwise || weight_->split == Split::rowwise);
}

void Linear::attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter) {
  KF_CHECK(!adapter_, Code::other, "a linear layer takes one adapter, and this one has one already");
  adapter_ = add_child(name, std::move(adapter));
  adapter_->split(weight_->split, weight_->split_unit, ranks_);
}

}  // namespace kf
