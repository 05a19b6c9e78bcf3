#include "optim/clip.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/global_norm/global_norm.h"
#include "parallel/world.h"

namespace kf {
namespace {

bool all_fp32(const std::vector<at::Tensor>& gradients) {
  return std::all_of(gradients.begin(), gradients.end(), [](const at::Tensor& one) { return one.scalar_type() == at::kFloat; });
}

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
  std::vector<at::Tensor> gradients;
  for (const ParameterPtr& parameter : ordered) {
    if (at::Tensor gradient = parameter->stored_gradient(); gradient.defined()) {
      gradients.push_back(std::move(gradient));
    }
  }
  return global_norm(gradients);
}

at::Tensor clip_factor(const at::Tensor& norm, double max_norm) {
  return std::isinf(max_norm) ? at::Tensor() : at::clamp_max(max_norm / (norm + 1e-6), 1.0);
}

void clip_gradients(const ParameterList& parameters, const at::Tensor& norm, double max_norm) {
  scale_gradients(parameters, clip_factor(norm, max_norm));
}

void scale_gradients(const ParameterList& parameters, const at::Tensor& factor) {
  if (!factor.defined()) {
    return;
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const ParameterPtr& parameter : parameters) {
    if (at::Tensor gradient = parameter->gradient(); gradient.defined()) {
      gradients.push_back(std::move(gradient));
    }
  }
  if (!gradients.empty() && all_fp32(gradients)) {
    at::_foreach_mul_(gradients, factor);
    return;
  }
  for (const at::Tensor& gradient : gradients) {
    gradient.mul_(factor);  // the factor stays in fp32
  }
}

}  // namespace kf
