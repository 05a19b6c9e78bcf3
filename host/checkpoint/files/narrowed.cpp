#include "checkpoint/files/narrowed.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/error.h"

namespace kf {
namespace {

/// Of the finite ones among its values; 0 without any.
double largest_magnitude(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.detach().to(at::kCPU, at::kFloat).abs();
  return wide.masked_fill(wide.isfinite().logical_not(), 0).max().item<double>();
}

}  // namespace

at::Tensor narrowed(const at::Tensor& tensor, at::ScalarType type, const std::string& name) {
  at::Tensor out = tensor.to(type);
  if (tensor.scalar_type() == type || out.numel() == 0 || type == at::kFloat || out.isfinite().all().item<bool>()) {
    return out;
  }
  if (out.isinf().logical_and(tensor.isfinite()).any().item<bool>()) {
    fail_too_large(name, tensor, type == at::kHalf ? "float16" : "bfloat16",
                   type == at::kHalf ? std::numeric_limits<at::Half>::max() : std::numeric_limits<at::BFloat16>::max());
  }
  return out;
}

void fail_too_large(const std::string& name, const at::Tensor& tensor, const std::string& type, double largest) {
  fail(Code::checkpoint, "'{}' holds a number of magnitude {}, and the largest of {} is {}: use {}", name, largest_magnitude(tensor), type,
       largest, type == "bfloat16" ? "float32" : "bfloat16 (or float32)");
}

}  // namespace kf
