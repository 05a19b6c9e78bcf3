#include "optim/slots.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/adamw/blockwise.h"

namespace kf {
namespace {

/// In a checkpoint, of what is `own` in memory.
at::IntArrayRef saved_sizes(const at::Tensor& own, const Parameter& parameter) {
  return is_blockwise(own.scalar_type()) ? parameter.master.sizes() : own.sizes();
}

}  // namespace

at::ScalarType state_type_of(const Parameter& weight, at::ScalarType type) {
  const bool stays = weight.numel() < kSmallestBlockwise || weight.role == Role::embedding;
  return is_blockwise(type) && stays ? at::kFloat : type;
}

at::Tensor Slots::make(const Kind& kind, const Parameter& parameter) const {
  const at::ScalarType type = state_type_of(parameter, kind.type);
  const at::TensorOptions options = parameter.master.options().requires_grad(false).dtype(type);
  if (is_blockwise(type)) {
    return at::zeros({blockwise_bytes(parameter.master.numel())}, options);
  }
  switch (kind.start) {
    case Start::zeros: return at::zeros(kind.shape ? at::IntArrayRef(kind.shape(parameter)) : parameter.master.sizes(), options);
    case Start::scalar: return at::zeros({}, options);
    case Start::parameter: return parameter.master.detach().to(type, /*non_blocking=*/false, /*copy=*/true);
  }
  return {};
}

/// Where the tensor may be kept, it is, so that a resume does not hold a state twice.
at::Tensor Slots::loaded(const Kind& kind, const Parameter& parameter, const at::Tensor& stored, bool owned) const {
  const bool like_weight = kind.start != Start::scalar && !kind.shape;
  const at::ScalarType type = state_type_of(parameter, kind.type);
  if (owned && like_weight && stored.sizes() == parameter.master.sizes() && stored.scalar_type() == type &&
      stored.device() == parameter.master.device() && stored.is_contiguous() && parameter.master.is_contiguous()) {
    return stored;
  }
  at::Tensor own = make(kind, parameter);
  if (stored.sizes() != saved_sizes(own, parameter)) {
    return {};
  }
  is_blockwise(type) ? to_blockwise(stored.to(own.device()), own) : void(own.copy_(stored));
  return own;
}

std::vector<at::Tensor>& Slots::of(const Parameter& parameter) {
  Own& mine = own_[parameter.name];
  if (mine.tensors.empty()) {
    mine.sizes = parameter.master.sizes().vec();
    for (const Kind& kind : kinds_) {
      mine.tensors.push_back(make(kind, parameter));
    }
  }
  return mine.tensors;
}

void Slots::save(OptimizerState& state) const {
  for (const auto& [name, mine] : own_) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const at::Tensor& stored = mine.tensors[i];
      state.tensors[kinds_[i].name + "." + name] = is_blockwise(stored.scalar_type()) ? from_blockwise(stored, mine.sizes) : stored;
    }
  }
}

bool Slots::holds_all(const OptimizerState& state, const Parameter& parameter) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
    const auto found = state.tensors.find(kind.name + "." + parameter.name);
    return found != state.tensors.end() && found->second.sizes() == saved_sizes(make(kind, parameter), parameter);
  });
}

void Slots::load(const OptimizerState& state, const std::vector<ParamGroup>& known) {
  own_.clear();
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
      Own& mine = own_[parameter->name];
      mine.sizes = parameter->master.sizes().vec();
      for (const Kind& kind : kinds_) {
        const std::string name = kind.name + "." + parameter->name;
        const auto found = state.tensors.find(name);
        KF_CHECK(found != state.tensors.end(), Code::checkpoint, "the optimizer state lacks '{}'", name);
        mine.tensors.push_back(loaded(kind, *parameter, found->second, state.owned));
        KF_CHECK(mine.tensors.back().defined(), Code::checkpoint, "the optimizer state '{}' has another shape than its parameter", name);
      }
    }
  }
}

TensorLists stored_lists_of(const ParamGroup& group, Slots& slots) {
  TensorLists lists;
  lists.slots.resize(slots.size());
  for (const ParameterPtr& parameter : group.parameters) {
    const at::Tensor gradient = parameter->stored_gradient();
    if (!gradient.defined()) {
      continue;
    }
    lists.parameters.push_back(parameter.get());
    lists.masters.push_back(parameter->master.detach());
    lists.gradients.push_back(gradient);
    const std::vector<at::Tensor>& mine = slots.of(*parameter);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      lists.slots[i].push_back(mine[i]);
    }
  }
  return lists;
}

TensorLists lists_of(const ParamGroup& group, Slots& slots) {
  TensorLists lists = stored_lists_of(group, slots);
  for (at::Tensor& master : lists.masters) {
    master = lists.copies.of(master, master.sizes());
  }
  for (at::Tensor& gradient : lists.gradients) {
    gradient = gradient.to(at::kFloat);
  }
  for (std::vector<at::Tensor>& slot : lists.slots) {
    for (std::size_t i = 0; i < slot.size(); ++i) {
      slot[i] = lists.copies.of(slot[i], lists.masters[i].sizes());
    }
  }
  return lists;
}

}  // namespace kf
