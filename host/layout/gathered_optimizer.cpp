#include "layout/gathered_optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

const Cut* tp_cut(const Parameter& weight) {
  const auto found =
      std::find_if(weight.placement.cuts.begin(), weight.placement.cuts.end(), [](const Cut& cut) { return cut.axis == Axis::tp; });
  return found == weight.placement.cuts.end() ? nullptr : &*found;
}

/// What the rank that updates it holds: all of its own part's dims but the divided one.
Shape whole_shape(const Parameter& weight) {
  Shape shape = weight.placement.of(weight.shape).size;
  const auto dim = static_cast<std::size_t>(tp_cut(weight)->dim);
  shape[dim] = weight.shape[dim];
  return shape;
}

void set_gradient(Parameter& weight, at::Tensor gradient) {
  if (weight.placement.rows() == nullptr) {
    weight.set_gradient(std::move(gradient));
  } else {
    weight.part_gradient = std::move(gradient);
  }
}

/// Parts along `dim` of all ranks -> the whole.
at::Tensor joined(const at::Tensor& part, std::int64_t dim, Group& tp) {
  const at::Tensor rows = part.detach().movedim(dim, 0).contiguous();
  return tp.gathered(rows, rows.size(0) * tp.size()).movedim(0, dim).contiguous();
}

}  // namespace

GatheredOptimizer::GatheredOptimizer(std::unique_ptr<Optimizer> inner, ParameterList weights, Group& tp)
    : WrappedOptimizer(std::move(inner)), weights_(std::move(weights)), tp_(tp) {
  ParameterList largest = weights_;
  std::stable_sort(largest.begin(), largest.end(), [](const ParameterPtr& a, const ParameterPtr& b) { return a->numel() > b->numel(); });
  std::vector<std::int64_t> load(static_cast<std::size_t>(tp.size()), 0);
  for (const ParameterPtr& weight : largest) {
    const auto owner = std::min_element(load.begin(), load.end());
    owners_[weight.get()] = owner - load.begin();
    weight->gathered = owner - load.begin() == tp.rank() ? Parameter::Gathered::here : Parameter::Gathered::elsewhere;
    *owner += weight->part_numel();
  }
}

/// Weights that have a gradient on any rank along tp.
ParameterList GatheredOptimizer::with_gradient() const {
  const at::Tensor any = at::zeros({static_cast<std::int64_t>(weights_.size())}, at::kByte);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    any.mutable_data_ptr<std::uint8_t>()[i] = weights_[i]->gradient().defined() ? 1 : 0;
  }
  tp_.largest(any);
  ParameterList out;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (any.const_data_ptr<std::uint8_t>()[i] != 0) {
      out.push_back(weights_[i]);
    }
  }
  return out;
}

GatheredOptimizer::Put GatheredOptimizer::gather(Parameter& weight) const {
  Put own{weight.master, weight.gradient()};
  const std::int64_t dim = tp_cut(weight)->dim;
  const at::Tensor gradient = own.gradient.defined() ? own.gradient : at::zeros_like(own.master, at::TensorOptions(weight.sum_type));
  const at::Tensor whole_gradient = joined(gradient, dim, tp_), whole_master = joined(own.master, dim, tp_);
  const bool here = weight.gathered == Parameter::Gathered::here;
  weight.master = here ? whole_master : at::Tensor();
  set_gradient(weight, here ? whole_gradient : at::Tensor());
  return own;
}

void GatheredOptimizer::put_back(Parameter& weight, const Put& own, std::int64_t owner) const {
  const Cut& cut = *tp_cut(weight);
  const at::Tensor whole =
      owner == tp_.rank() ? weight.master.detach().contiguous() : at::empty(whole_shape(weight), own.master.options().requires_grad(false));
  tp_.broadcast(whole, owner);
  own.master.detach().copy_(whole.narrow(cut.dim, cut.begin(), cut.size()));
  weight.master = own.master;
  set_gradient(weight, own.gradient);
}

void GatheredOptimizer::step(double lr) {
  const at::NoGradGuard no_grad;
  const ParameterList moved = with_gradient();
  std::vector<Put> own;
  for (const ParameterPtr& weight : moved) {
    own.push_back(gather(*weight));
  }
  inner().step(lr);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    put_back(*moved[i], own[i], owners_.at(moved[i].get()));
  }
}

void GatheredOptimizer::load(const OptimizerState& state) {
  std::vector<at::Tensor> own;
  for (const ParameterPtr& weight : weights_) {  // state has the shape of what is updated here
    own.push_back(weight->master);
    if (weight->gathered == Parameter::Gathered::here) {
      weight->master = at::empty(whole_shape(*weight), own.back().options().requires_grad(false));
    }
  }
  inner().load(state);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    weights_[i]->master = own[i];
  }
}

std::unique_ptr<Optimizer> gathered_where_needed(std::unique_ptr<Optimizer> optimizer, Model& model, const World& world) {
  Group& tp = world.along(Axis::tp);
  if (tp.size() == 1) {
    return optimizer;
  }
  ParameterList weights;
  for (const ParameterPtr& weight : model.parameters()) {
    if (weight->trainable && !weight->buffer && tp_cut(*weight) != nullptr && weight->part_numel() > 0 &&
        optimizer->needs(*weight) == Optimizer::Needs::whole) {
      weights.push_back(weight);
    }
  }
  if (weights.empty()) {
    return optimizer;
  }
  KF_CHECK(
      !optimizer->wants_curvature(), Code::config,
      "this optimizer needs {} whole, and estimates of the loss's curvature, of which every rank along distributed.tp = {} has a part: "
      "use another optimizer.name, or distributed.tp = 1",
      weights.front()->name, tp.size());
  return std::make_unique<GatheredOptimizer>(std::move(optimizer), std::move(weights), tp);
}

}  // namespace kf
