#pragma once
// Numeric gradients, for backwards that are written by hand.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace kf::test {

/// Normal numbers, the same for the same seed.
inline at::Tensor drawn(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kDouble)).to(type);
}

/// Largest difference between the gradient of sum(f(x) * direction) and central differences. f takes and gives double.
inline double gradient_error(const std::function<at::Tensor(const at::Tensor&)>& f, const at::Tensor& start) {
  const at::Tensor x = start.clone().requires_grad_();
  const at::Tensor y = f(x);
  const at::Tensor direction = drawn(y.sizes(), 99);
  (y * direction).sum().backward();
  const at::NoGradGuard no_grad;
  double worst = 0;
  const at::Tensor probe = start.clone();
  const at::Tensor flat = probe.view(-1), gradient = x.grad().reshape(-1);
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    constexpr double h = 1e-5;
    const double middle = flat[i].item<double>();
    const auto value_at = [&](double v) {
      flat[i].fill_(v);
      return (f(probe) * direction).sum().item<double>();
    };
    const double difference = (value_at(middle + h) - value_at(middle - h)) / (2 * h);
    flat[i].fill_(middle);
    worst = std::max(worst, std::abs(difference - gradient[i].item<double>()));
  }
  return worst;
}

}  // namespace kf::test
