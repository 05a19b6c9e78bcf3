#include "checkpoint/worker_state.h"

#include <algorithm>
#include <map>

#include "core/text.h"
#include "optim/diloco.h"

namespace kf {

WorkerState::WorkerState(const Optimizer& optimizer, const std::vector<std::string>& stored) {
  const auto* const diloco = dynamic_cast<const Diloco*>(&optimizer);
  if (diloco == nullptr) {
    return;
  }
  apart_ = true;
  worker_ = diloco->workers().rank();
  const std::string prefix = format("worker{}.", worker_);
  is_new_ = worker_ > 0 && std::none_of(stored.begin(), stored.end(), [&](const std::string& name) { return name.starts_with(prefix); });
}

std::string WorkerState::own(const std::string& name) const {
  if (!apart_ || is_of_all_workers(name)) {
    return name;
  }
  const bool named = name.starts_with("worker");
  if (worker_ == 0 || is_new_) {
    return named ? "" : name;
  }
  const std::string prefix = format("worker{}.", worker_);
  return name.starts_with(prefix) ? name.substr(prefix.size()) : "";
}

void begin_at_outer(OptimizerState& state, const Optimizer& optimizer) {
  std::map<std::string, at::Tensor> begun;
  const std::string outer = kOuterPrefix;
  for (const auto& [name, tensor] : state.tensors) {
    if (name.starts_with(outer)) {
      begun[kWorkerWeightPrefix + name.substr(outer.size())] = tensor;
    }
  }
  for (const auto& [name, live] : optimizer.state().tensors) {
    if (name.starts_with(kWorkerWeightPrefix)) {
      begun.emplace(name, live);
    }
  }
  state.tensors.merge(begun);
}

}  // namespace kf
