#include "optim/slots.h"

#include <ATen/ATen.h>

#include "core/error.h"

namespace kf {

at::Tensor Slots::make(const Kind& kind, const Parameter& parameter) const {
  switch (kind.start) {
    case Start::zeros: return at::zeros_like(parameter.master, parameter.master.options().requires_grad(false));
    case Start::scalar: return at::zeros({}, parameter.master.options().requires_grad(false));
    case Start::parameter: return parameter.master.detach().clone();
  }
  return {};
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

void Slots::load(const OptimizerState& state, const std::vector<ParamGroup>& known) {
  tensors_.clear();
  for (const ParamGroup& group : known) {
    for (const ParameterPtr& parameter : group.parameters) {
      if (state.tensors.count(kinds_.front().name + "." + parameter->name) == 0) {
        continue;  // this parameter never had a gradient
      }
      for (std::size_t i = 0; i < kinds_.size(); ++i) {
        const std::string name = kinds_[i].name + "." + parameter->name;
        const auto found = state.tensors.find(name);
        KF_CHECK(found != state.tensors.end(), Code::checkpoint, "the optimizer state lacks '{}'", name);
        at::Tensor& mine = of(*parameter)[i];
        KF_CHECK(found->second.sizes() == mine.sizes(), Code::checkpoint, "the optimizer state '{}' has another shape than its parameter",
                 name);
        mine.copy_(found->second);
      }
    }
  }
}

TensorLists lists_of(const ParamGroup& group, Slots& slots, std::size_t kinds) {
  TensorLists lists;
  lists.slots.resize(kinds);
  for (const ParameterPtr& parameter : group.parameters) {
    const at::Tensor gradient = parameter->gradient();
    if (!gradient.defined()) {
      continue;
    }
    lists.masters.push_back(parameter->master.detach());
    lists.gradients.push_back(gradient);
    const std::vector<at::Tensor>& mine = slots.of(*parameter);
    for (std::size_t i = 0; i < kinds; ++i) {
      lists.slots[i].push_back(mine[i]);
    }
  }
  return lists;
}

}  // namespace kf
