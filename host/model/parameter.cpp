#include "model/parameter.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <numeric>
#include <utility>

#include "model/weight_unit.h"

namespace kf {
namespace {

/// The views of a stack in one of its forms; `parent` is the name of the module that owns it, with its dot.
std::vector<StoredView> stack_views(const Parameter& parameter, const std::string& parent, bool packed) {
  const StackNames& names = *parameter.stack;
  if (packed) {
    return {{parent + names.packed, -1, parameter.shape.size() == 3}};
  }
  std::vector<StoredView> views;
  const std::size_t at = names.each.find("{}");
  for (std::int64_t slice = 0; slice < parameter.shape.front(); ++slice) {
    std::string name = names.each;
    views.push_back({parent + name.replace(at, 2, std::to_string(slice)), slice, false});
  }
  return views;
}

}  // namespace

std::vector<std::int64_t> StoredView::shape(const std::vector<std::int64_t>& whole) const {
  std::vector<std::int64_t> own(whole.begin() + (slice >= 0 ? 1 : 0), whole.end());
  if (transposed) {
    std::swap(own[own.size() - 1], own[own.size() - 2]);
  }
  return own;
}

at::Tensor StoredView::of(const at::Tensor& whole) const {
  const at::Tensor part = slice >= 0 ? whole.select(0, slice) : whole;
  return transposed ? part.transpose(-1, -2) : part;
}

std::vector<StoredView> Parameter::stored() const { return forms().front(); }

std::vector<std::vector<StoredView>> Parameter::forms() const {
  if (!stack) {
    return {{{name}}};
  }
  const std::string parent = name.substr(0, name.rfind('.') + 1);
  return {stack_views(*this, parent, stack->write_packed), stack_views(*this, parent, !stack->write_packed)};
}

std::int64_t Parameter::numel() const { return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()); }

void Parameter::set_gradient(at::Tensor gradient) {
  if (!sums_apart()) {
    value.mutable_grad() = std::move(gradient);
  } else {
    sum = std::move(gradient);
  }
}

at::Tensor Parameter::wide_gradient() const {
  const at::Tensor own = gradient();
  return own.defined() ? own.to(at::kFloat) : own;
}

const at::Tensor& Parameter::summed() const {
  if (sum.defined()) {
    sum = sum.to(sum_type);
  }
  return sum;
}

void Parameter::accumulate() {
  if (!sums_apart() || !value.grad().defined()) {
    return;
  }
  if (sum.defined()) {
    summed();
    sum.add_(value.grad());
  } else {
    sum = value.grad();
  }
  value.mutable_grad() = at::Tensor();
}

void Parameter::zero_gradient() {
  set_gradient(at::zeros(held().size, value.options().requires_grad(false).dtype(sums_apart() ? sum_type : at::kFloat)));
}

void Parameter::clear_local_gradient() {
  value.mutable_grad() = at::Tensor();
  sum = at::Tensor();
}

void Parameter::clear_gradient() {
  clear_local_gradient();
  part_gradient = at::Tensor();
}

Range Parameter::rows_of(std::int64_t rank) const {
  Placement other = placement;
  if (other.rows() != nullptr) {
    other.cuts.back().part = rank;
  }
  return other.of(shape).within(held());
}

void Parameter::set_trains(bool on) {
  trains_ = on;
  if (value.defined()) {
    value.set_requires_grad(on);
  }
}

void Parameter::publish() {
  if (unit == nullptr) {
    publish_whole();
    return;
  }
  unit->begin_publish();
  unit->end_publish();
}

void Parameter::value_written() { written_ = static_cast<std::int64_t>(master._version()); }

void Parameter::publish_whole() {
  const std::int64_t written = std::exchange(written_, -1);
  if (master.defined() && !value.is_same(master) && written != static_cast<std::int64_t>(master._version())) {
    const at::NoGradGuard no_grad;
    value.copy_(master);
  }
}

void sum_gradients_in(at::ScalarType type, const ParameterList& parameters) {
  for (const ParameterPtr& parameter : parameters) {
    parameter->sum_type = type;
  }
}

}  // namespace kf
