#include "kernels/product/formula_gradients.h"

#include <torch/csrc/autograd/autograd.h>

#include <cstddef>

namespace kf {

torch::autograd::variable_list formula_gradients(const at::Tensor& result, const torch::autograd::variable_list& inputs,
                                                 const at::Tensor& gradient) {
  const auto has_gradient = [](const at::Tensor& x) { return x.defined() && x.requires_grad(); };
  torch::autograd::variable_list asked, out(inputs.size());
  for (const at::Tensor& each : inputs) {
    if (has_gradient(each)) {
      asked.push_back(each);
    }
  }
  const torch::autograd::variable_list found =
      torch::autograd::grad({result}, asked, {gradient}, /*retain_graph=*/true, /*create_graph=*/true);
  for (std::size_t i = 0, next = 0; i < inputs.size(); ++i) {
    if (has_gradient(inputs[i])) {
      out[i] = found[next++];
    }
  }
  return out;
}

}  // namespace kf
