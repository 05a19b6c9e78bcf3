#include "optim/clip.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kf {
namespace {

std::vector<at::Tensor> gradients_of(const ParameterList& parameters) {
  std::vector<at::Tensor> gradients;
  for (const ParameterPtr& parameter : parameters) {
    if (const at::Tensor gradient = parameter->gradient(); gradient.defined()) {
      gradients.push_back(gradient);
    }
  }
  return gradients;
}

}  // namespace

at::Tensor gradient_norm(const ParameterList& parameters) {
  const at::NoGradGuard no_grad;
  ParameterList ordered = parameters;  // by name: the sum of a model does not depend on the order in which its layers were made
  std::sort(ordered.begin(), ordered.end(), [](const ParameterPtr& a, const ParameterPtr& b) { return a->name < b->name; });
  const std::vector<at::Tensor> gradients = gradients_of(ordered);
  if (gradients.empty()) {
    return at::zeros({}, at::kFloat);
  }
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2);
}

void clip_gradients(const ParameterList& parameters, const at::Tensor& norm, double max_norm) {
  if (std::isinf(max_norm)) {
    return;
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (!gradients.empty()) {
    at::_foreach_mul_(gradients, at::clamp_max(max_norm / (norm + 1e-6), 1.0));
  }
}

}  // namespace kf
