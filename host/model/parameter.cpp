#include "model/parameter.h"

#include <ATen/ATen.h>

#include <functional>
#include <numeric>

namespace kf {

std::int64_t Parameter::numel() const { return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()); }

void Parameter::set_gradient(at::Tensor gradient) {
  if (value.is_same(master)) {
    value.mutable_grad() = std::move(gradient);
  } else {
    sum = std::move(gradient);
  }
}

void Parameter::accumulate() {
  if (value.is_same(master) || !value.grad().defined()) {
    return;
  }
  if (sum.defined()) {
    sum.add_(value.grad());
  } else {
    sum = value.grad().to(at::kFloat);
  }
  value.mutable_grad() = at::Tensor();
}

void Parameter::clear_gradient() {
  value.mutable_grad() = at::Tensor();
  sum = at::Tensor();
}

void Parameter::publish() {
  if (!value.is_same(master)) {
    const at::NoGradGuard no_grad;
    value.copy_(master);
  }
}

}  // namespace kf
