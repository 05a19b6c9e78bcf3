#include "model/linear.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

namespace kf {

Linear::Linear(std::int64_t in, std::int64_t out, Init init, Role role) : weight_(add_parameter("weight", {out, in}, init, role)) {}

Linear::Linear(ParameterPtr weight) : weight_(std::move(weight)) { share_parameter("weight", weight_); }

at::Tensor Linear::forward(const at::Tensor& x) const { return at::linear(x, weight_->value); }

Init output_init(double std, std::int64_t n_layers) { return Init::normal(std / std::sqrt(2.0 * static_cast<double>(n_layers))); }

}  // namespace kf
