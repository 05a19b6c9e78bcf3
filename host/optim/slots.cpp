#include "optim/slots.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.h"

namespace kf {

at::Tensor Slots::make(const Kind& kind, const Parameter& parameter) const {
  const at::TensorOptions options = parameter.master.options().requires_grad(false).dtype(kind.type);
  switch (kind.start) {
    case Start::zeros: return at::zeros(kind.shape ? at::IntArrayRef(kind.shape(parameter)) : parameter.master.sizes(), options);
    case Start::scalar: return at::zeros({}, options);
    case Start::parameter: return parameter.master.detach().to(kind.type, /*non_blocking=*/false, /*copy=*/true);
  }
  return {};
}

/// Where the tensor may be kept, it is, so that a resume does not hold a state twice.
at::Tensor Slots::loaded(const Kind& kind, const Parameter& parameter, const at::Tensor& stored, bool owned) const {
  const bool like_weight = kind.start != Start::scalar && !kind.shape;
  if (owned && like_weight && stored.sizes() == parameter.master.sizes() && stored.scalar_type() == kind.type &&
      stored.device() == parameter.master.device() && stored.is_contiguous() && parameter.master.is_contiguous()) {
    return stored;
  }
  const at::Tensor own = make(kind, parameter);
  return stored.sizes() == own.sizes() ? own.copy_(stored) : at::Tensor();
}

std::vector<at::Tensor>& Slots::of(const Parameter& parameter) {
  std::vector<at::Tensor>& mine = tensors_[parameter.name];
  if (mine.empty()) {
    for (const Kind& kind : kinds_) {
      mine.push_back(make(kind, parameter));
    }
  }
  return mine;
}

void Slots::save(OptimizerState& state) const {
  for (const auto& [name, mine] : tensors_) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      state.tensors[kinds_[i].name + "." + name] = mine[i];
    }
  }
}

bool Slots::holds_all(const OptimizerState& state, const Parameter& parameter) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
    const auto found = state.tensors.find(kind.name + "." + parameter.name);
    return found != state.tensors.end() && found->second.sizes() == make(kind, parameter).sizes();
  });
}

void Slots::load(const OptimizerState& state, const std::vector<ParamGroup>& known) {
  tensors_.clear();
  if (kinds_.empty()) {
    return;
  }
  for (const ParamGroup& group : known) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (parameter->part_numel() == 0 || state.tensors.count(kinds_.front().name + "." + parameter->name) == 0) {
        continue;  // another rank's, or this parameter never had a gradient
      }
      if (state.partial && !holds_all(state, *parameter)) {
        continue;
      }
      for (std::size_t i = 0; i < kinds_.size(); ++i) {
        const std::string name = kinds_[i].name + "." + parameter->name;
        const auto found = state.tensors.find(name);
        KF_CHECK(found != state.tensors.end(), Code::checkpoint, "the optimizer state lacks '{}'", name);
        std::vector<at::Tensor>& slots = tensors_[parameter->name];
        slots.resize(kinds_.size());
        slots[i] = loaded(kinds_[i], *parameter, found->second, state.owned);
        KF_CHECK(slots[i].defined(), Code::checkpoint, "the optimizer state '{}' has another shape than its parameter", name);
      }
    }
  }
}

namespace {

/// `stored` itself, or an fp32 copy of it.
at::Tensor working(const at::Tensor& stored, TensorLists& lists) {
  if (stored.scalar_type() == at::kFloat) {
    return stored;
  }
  lists.copies.emplace_back(stored, stored.to(at::kFloat));
  return lists.copies.back().second;
}

}  // namespace

void TensorLists::write_back() {
  for (const auto& [stored, copy] : copies) {
    stored.copy_(copy);
  }
}

TensorLists lists_of(const ParamGroup& group, Slots& slots) {
  TensorLists lists;
  lists.slots.resize(slots.size());
  for (const ParameterPtr& parameter : group.parameters) {
    const at::Tensor gradient = parameter->wide_gradient();
    if (!gradient.defined()) {
      continue;
    }
    lists.parameters.push_back(parameter.get());
    lists.masters.push_back(working(parameter->master.detach(), lists));
    lists.gradients.push_back(gradient);
    const std::vector<at::Tensor>& mine = slots.of(*parameter);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      lists.slots[i].push_back(working(mine[i], lists));
    }
  }
  return lists;
}

}  // namespace kf
