#include "parallel/reduce.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/maximum.h>
#include <c10/core/ScalarType.h>

namespace kf {

at::Tensor sum_in_order(const std::vector<at::Tensor>& parts, bool into_first) {
  const at::NoGradGuard no_grad;
  const at::ScalarType type = parts.front().scalar_type();
  if (parts.size() == 1) {
    return parts.front();
  }
  if (c10::isReducedFloatingType(type)) {
    at::Tensor sum = parts[0].to(at::kFloat);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      sum.add_(parts[i].to(at::kFloat));
    }
    return sum.to(type);
  }
  at::Tensor sum = into_first ? parts[0] : parts[0].clone();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.add_(parts[i]);
  }
  return sum;
}

at::Tensor largest_of(const std::vector<at::Tensor>& parts) {
  const at::NoGradGuard no_grad;
  at::Tensor largest = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    largest = at::maximum(largest, parts[i]);
  }
  return largest;
}

void copy_unless_same(const at::Tensor& to, const at::Tensor& from) {
  if (to.const_data_ptr() != from.const_data_ptr() || to.numel() == 0) {
    const at::NoGradGuard no_grad;
    to.copy_(from);
  }
}

}  // namespace kf
