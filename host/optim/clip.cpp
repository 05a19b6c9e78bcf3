#include "optim/clip.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "parallel/world.h"

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

bool low(const std::vector<at::Tensor>& gradients) { return gradients.front().scalar_type() != at::kFloat; }

/// 0-dim fp32 each.
std::vector<at::Tensor> norms_of(const std::vector<at::Tensor>& gradients) {
  return at::_foreach_norm(gradients, 2, low(gradients) ? std::optional(at::kFloat) : std::nullopt);
}

}  // namespace

namespace {

/// The squared norm of each weight's gradient, its parts added up; a part that several ranks train counts once.
at::Tensor norm_over(const ParameterList& ordered, const World& world) {
  const at::Tensor squares = at::zeros({static_cast<std::int64_t>(ordered.size())}, at::kFloat);
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const at::Tensor gradient = ordered[i]->gradient();
    if (gradient.defined() && ordered[i]->first) {
      squares[static_cast<std::int64_t>(i)] = at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kFloat).square();
    }
  }
  world.stage().sum(squares);
  const at::Tensor total = squares.sum();
  world.along(Axis::pp).sum(total);
  return total.sqrt();
}

}  // namespace

at::Tensor gradient_norm(const ParameterList& parameters, const World* world) {
  const at::NoGradGuard no_grad;
  ParameterList ordered = parameters;  // by name: the sum of a model does not depend on the order in which its layers were made
  std::sort(ordered.begin(), ordered.end(), [](const ParameterPtr& a, const ParameterPtr& b) { return a->name < b->name; });
  if (world != nullptr && world->stage().size() * world->along(Axis::pp).size() > 1) {
    return norm_over(ordered, *world);
  }
  const std::vector<at::Tensor> gradients = gradients_of(ordered);
  if (gradients.empty()) {
    return at::zeros({}, at::kFloat);
  }
  return at::linalg_vector_norm(at::stack(norms_of(gradients)), 2);
}

void clip_gradients(const ParameterList& parameters, const at::Tensor& norm, double max_norm) {
  if (std::isinf(max_norm)) {
    return;
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients = gradients_of(parameters);
  const at::Tensor factor = at::clamp_max(max_norm / (norm + 1e-6), 1.0);
  if (!gradients.empty() && !low(gradients)) {
    at::_foreach_mul_(gradients, factor);
    return;
  }
  for (const at::Tensor& gradient : gradients) {
    gradient.mul_(factor);  // the factor stays in fp32
  }
}

}  // namespace kf
