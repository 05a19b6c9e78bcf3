// The gradients of a step, once backward is through: those of all ranks, what hooks make of them, their norm.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "model/partial_gradients.h"
#include "model/pipelined_model.h"
#include "optim/clip.h"
#include "train/step/stepper.h"

namespace kf {

void Stepper::unscale() const {
  std::vector<at::Tensor> gradients;
  for (const ParameterPtr& parameter : parameters_) {
    if (const at::Tensor gradient = parameter->gradient(); gradient.defined()) {
      gradients.push_back(gradient);
    }
  }
  const at::NoGradGuard no_grad;
  if (!gradients.empty()) {  // a stage may train nothing
    at::_foreach_mul_(gradients, 1 / scale());
  }
}

/// Whether there was an infinity that a NaN beside it covers in the sums: in a micro-batch's loss, or in a gradient.
bool Stepper::hides_infinity(const StepResult& result) const {
  if (result.infinite_loss || !std::isnan(result.grad_norm) || options_.guard.on_inf != "abort") {
    return result.infinite_loss;
  }
  const bool mine = std::any_of(parameters_.begin(), parameters_.end(), [](const ParameterPtr& parameter) {
    const at::Tensor gradient = parameter->gradient();
    return gradient.defined() && gradient.isinf().any().item<bool>();
  });
  const at::Tensor any = at::full({1}, mine, at::kBool);
  options_.world.all().largest(any);
  return any.item<bool>();
}

/// Whether the callback changed gradients, or may have: a view that a script kept is seen by its tensor's version.
bool Stepper::show_gradients(const Callbacks& callbacks, StepResult& result) const {
  const auto versions = [this] {
    std::vector<std::int64_t> out;
    for (const ParameterPtr& parameter : parameters_) {
      const at::Tensor gradient = parameter->gradient();
      out.push_back(gradient.defined() ? gradient._version() : 0);
    }
    return out;
  };
  const std::vector<std::int64_t> before = versions();
  const bool lent = callbacks.backward_end(result);
  return lent || versions() != before;
}

/// A hook of one rank may have looked at the gradients, or asked to leave the update out: all do the same.
void Stepper::agree_on_gradients(bool& changed, StepResult& result) const {
  Group& all = options_.world.all();
  if (all.size() == 1) {
    return;
  }
  for (const std::string& told : all.tell((changed ? "1" : "0") + result.skipped)) {
    changed = changed || told.front() == '1';
    result.skipped = result.skipped.empty() ? told.substr(1) : result.skipped;
  }
}

/// Replicas hold the same weights only as long as they make the same updates.
void Stepper::check_replicas(double norm) const {
  Group& replicas = options_.world.along(Axis::dp_replicate);
  if (replicas.size() == 1) {
    return;
  }
  const std::vector<std::string> norms = replicas.tell(format("{}", norm));
  const auto other = std::find_if(norms.begin(), norms.end(), [&](const std::string& one) { return one != norms.front(); });
  KF_CHECK(other == norms.end(), Code::script,
           "on_backward_end left other gradients on some ranks: their norm is {} on replica 0 and {} on replica {}. A hook runs on every "
           "rank and "
           "must change gradients alike on all that hold the same weights (distributed.dp_replicate)",
           norms.front(), *other, other - norms.begin());
}

void Stepper::reduce_gradients() const {
  if (UnitLine* const line = line_of(model_)) {
    line->reduce();
  }
  if (PipelinedModel* const pipeline = as_pipeline(model_)) {
    pipeline->join_gradients();
  }
  sum_partial_gradients(parameters_, options_.world.along(Axis::tp));
}

at::Tensor Stepper::norm_of_gradients() const { return kf::gradient_norm(parameters_, &options_.world); }

double Stepper::gradient_norm() const { return norm_of_gradients().item<double>(); }

}  // namespace kf
