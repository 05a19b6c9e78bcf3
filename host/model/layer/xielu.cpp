#include "model/layer/xielu.h"

#include <ATen/ATen.h>

#include <cmath>

#include "model/observe.h"

namespace kf {
namespace {

constexpr double kSlope = 0.5;
constexpr double kStart = 0.8;
constexpr double kNearZero = -1e-6;  // e^h - 1 is taken at most there

/// The number whose softplus is `value`.
double before_softplus(double value) { return std::log(std::expm1(value)); }

}  // namespace

XieluMlp::XieluMlp(const MlpOptions& o) : ranks_(o.ranks) {
  up_ = add_child("up_proj", std::make_shared<Linear>(o.dim, o.hidden, o.in, Role::hidden, o.bias));
  down_ = add_child("down_proj", std::make_shared<Linear>(o.hidden, o.dim, o.out, Role::hidden, o.bias));
  up_->split(Split::colwise, 1, ranks_);
  down_->split(Split::rowwise, 1, ranks_);
  alpha_p_ = add_parameter("alpha_p", {1}, Init::constant(before_softplus(kStart)), Role::vector);
  alpha_n_ = add_parameter("alpha_n", {1}, Init::constant(before_softplus(kStart - kSlope)), Role::vector);
  alpha_p_->split = alpha_n_->split = Split::sequence;  // of each rank's share of the numbers
}

at::Tensor XieluMlp::activate(const at::Tensor& h) const {
  const at::Tensor above = at::softplus(alpha_p_->value);
  const at::Tensor below = at::softplus(alpha_n_->value) + kSlope;
  const at::Tensor bent = at::where(h > 0, above * h * h, below * (at::expm1(h.clamp_max(kNearZero)) - h));
  return (bent + kSlope * h).to(h.scalar_type());
}

at::Tensor XieluMlp::forward(const at::Tensor& x, const ForwardContext& context) const {
  return observed(*this, x, ranks_.leave(down_->forward(activate(up_->forward(ranks_.enter(x, context)))), context));
}

}  // namespace kf
