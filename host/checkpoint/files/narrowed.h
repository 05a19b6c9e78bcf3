#pragma once
// Weights in a smaller type, whose range may end before their values.

#include <ATen/core/Tensor.h>

#include <string>

namespace kf {

/// `tensor` in `type`, of float32, bfloat16 and float16. Throws Code::checkpoint naming `name` and its largest magnitude where a finite
/// value would become infinite.
at::Tensor narrowed(const at::Tensor& tensor, at::ScalarType type, const std::string& name);

/// That failure: `largest` is the end of what is called `type`.
[[noreturn]] void fail_too_large(const std::string& name, const at::Tensor& tensor, const std::string& type, double largest);

}  // namespace kf
