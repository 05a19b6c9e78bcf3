#pragma once
// State tensors beside the parameters, one of each kind per parameter, and their way into checkpoints.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace kf {

/// "exp_avg" -> one fp32 tensor like each parameter, made when the parameter first has a gradient.
class Slots {
 public:
  /// How a slot starts: zeros, a zero scalar (step counters), or the parameter itself.
  enum class Start { zeros, scalar, parameter };
  struct Kind {
    std::string name;
    Start start = Start::zeros;
  };

  explicit Slots(std::vector<Kind> kinds) : kinds_(std::move(kinds)) {}

  /// The tensors of `parameter`, in the order of the kinds.
  std::vector<at::Tensor>& of(const Parameter& parameter);
  bool contains(const Parameter& parameter) const { return tensors_.count(parameter.name) > 0; }

  void save(OptimizerState& state) const;
  /// Throws Code::checkpoint for a missing or misshapen tensor; `known` are the parameters that may appear.
  void load(const OptimizerState& state, const std::vector<ParamGroup>& known);

 private:
  at::Tensor make(const Kind& kind, const Parameter& parameter) const;

  std::vector<Kind> kinds_;
  std::map<std::string, std::vector<at::Tensor>> tensors_;
};

/// What one fused or foreach call works on: the parameters of a group that have a gradient.
struct TensorLists {
  std::vector<at::Tensor> masters;
  std::vector<at::Tensor> gradients;
  std::vector<std::vector<at::Tensor>> slots;  // one list a kind
};
TensorLists lists_of(const ParamGroup& group, Slots& slots, std::size_t kinds);

}  // namespace kf
