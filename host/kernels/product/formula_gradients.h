#pragma once
// The backward of a node that is asked for gradients of gradients: by its formula.

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

namespace kf {

/// The gradients of `inputs` for `gradient` of `result`, which a formula of LibTorch's operators made of them under the grad mode. They can
/// be differentiated again. Undefined for inputs that are undefined or have no gradients.
torch::autograd::variable_list formula_gradients(const at::Tensor& result, const torch::autograd::variable_list& inputs,
                                                 const at::Tensor& gradient);

}  // namespace kf
