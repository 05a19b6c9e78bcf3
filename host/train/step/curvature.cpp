#include "train/step/curvature.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/error.h"
#include "model/partial_gradients.h"
#include "model/seed.h"
#include "parallel/world.h"

namespace kf {
namespace {

using torch::autograd::variable_list;

/// s . g over all weights, in fp32; undefined where no gradient depends on the weights.
at::Tensor product(const variable_list& gradients, const std::vector<at::Tensor>& signs) {
  at::Tensor sum;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].defined() && gradients[i].requires_grad()) {
      const at::Tensor term = (gradients[i].to(at::kFloat) * signs[i]).sum();
      sum = sum.defined() ? sum + term : term;
    }
  }
  return sum;
}

/// Over all ranks that hold the same part of the weight and have other tokens.
void sum_over_holders(const Parameter& weight, const at::Tensor& t, const World& world) {
  const std::vector<Cut>& cuts = weight.placement.cuts;
  if (std::none_of(cuts.begin(), cuts.end(), [](const Cut& cut) { return cut.axis == Axis::ep; })) {
    world.data().sum(t);
    return;
  }
  world.expert_shards().sum(t);
  world.along(Axis::dp_replicate).sum(t);
}

}  // namespace

at::Tensor curvature_signs(const Parameter& parameter, std::uint64_t seed, std::int64_t step) {
  const at::NoGradGuard no_grad;
  const std::uint64_t moment = mixed_seed(seed_of(seed, "curvature of " + parameter.name), static_cast<std::uint64_t>(step));
  const at::Tensor signs = at::empty(parameter.shape, parameter.value.options().requires_grad(false));  // the same on any number of ranks
  signs.bernoulli_(0.5, seeded_generator(signs.device(), moment)).mul_(2).sub_(1);
  return parameter.held().of(signs);
}

CurvatureEstimate::CurvatureEstimate(const ParameterList& parameters, std::uint64_t seed, std::int64_t step) {
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->value.requires_grad()) {
      parameters_.push_back(parameter);
      leaves_.push_back(parameter->value);
      signs_.push_back(curvature_signs(*parameter, seed, step));
    }
  }
  sums_.resize(leaves_.size());
}

void CurvatureEstimate::add(const at::Tensor& loss) {
  variable_list gradients, products;
  try {
    gradients = torch::autograd::grad({loss}, leaves_, {}, /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
    const at::Tensor total = product(gradients, signs_);
    products = total.defined() ? torch::autograd::grad({total}, leaves_, {}, /*retain_graph=*/false, /*create_graph=*/false,
                                                       /*allow_unused=*/true)
                               : variable_list(leaves_.size());
  } catch (const c10::Error& e) {
    fail(Code::config,
         "this optimizer needs second derivatives of the loss, and a piece of the model or the loss has none ({}); use another "
         "optimizer.name, or the native parts",
         e.what_without_backtrace());
  }
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    if (!gradients[i].defined()) {
      continue;  // the loss does not depend on it
    }
    if (!sums_[i].defined()) {
      sums_[i] = at::zeros(leaves_[i].sizes(), leaves_[i].options().dtype(at::kFloat).requires_grad(false));
    }
    if (products[i].defined()) {
      sums_[i].addcmul_(products[i].to(at::kFloat), signs_[i].to(at::kFloat));
    }
  }
}

Curvature CurvatureEstimate::take(double scale, const World& world) {
  const at::NoGradGuard no_grad;
  Group &data = world.data(), &tp = world.along(Axis::tp);
  Curvature out;
  at::Tensor total;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (data.size() * tp.size() > 1 && parameters_[i]->trains()) {  // on another rank the loss may depend on it
      sums_[i] = sums_[i].defined() ? sums_[i] : at::zeros(parameters_[i]->held().size, at::kFloat);
      sum_over_holders(*parameters_[i], sums_[i], world);
      if (has_partial_gradient(*parameters_[i])) {
        tp.sum(sums_[i]);
      }
    }
    if (sums_[i].defined()) {
      const at::Tensor sum = sums_[i].div_(scale).sum();
      out[parameters_[i]->name] = parameters_[i]->placement.of(parameters_[i]->shape).within(parameters_[i]->held()).of(sums_[i]);
      total = total.defined() ? total + sum : sum;
    }
  }
  const at::Tensor bad = total.defined() ? at::isfinite(total).logical_not().view({1}) : at::zeros({1}, at::kBool);
  data.largest(bad);  // ranks may hold other weights
  tp.largest(bad);
  return bad.item<bool>() ? Curvature() : out;
}

}  // namespace kf
