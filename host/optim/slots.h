#pragma once
// State tensors beside the parameters, one of each kind per parameter, and their way into checkpoints.

#include <ATen/core/Tensor.h>

#include <functional>
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
    at::ScalarType type = at::kFloat;                                       // in memory; the arithmetic is fp32
    std::function<std::vector<std::int64_t>(const Parameter&)> shape = {};  // of zeros; unset takes the parameter's
  };

  explicit Slots(std::vector<Kind> kinds) : kinds_(std::move(kinds)) {}

  std::size_t size() const { return kinds_.size(); }
  /// The tensors of `parameter`, in the order of the kinds.
  std::vector<at::Tensor>& of(const Parameter& parameter);
  bool contains(const Parameter& parameter) const { return tensors_.count(parameter.name) > 0; }

  void save(OptimizerState& state) const;
  /// Throws Code::checkpoint for a missing or misshapen tensor; `known` are the parameters that may appear. Other types are cast.
  void load(const OptimizerState& state, const std::vector<ParamGroup>& known);

 private:
  bool holds_all(const OptimizerState& state, const Parameter& parameter) const;
  /// `stored` as a slot; undefined where it has another shape.
  at::Tensor loaded(const Kind& kind, const Parameter& parameter, const at::Tensor& stored, bool owned) const;
  at::Tensor make(const Kind& kind, const Parameter& parameter) const;

  std::vector<Kind> kinds_;
  std::map<std::string, std::vector<at::Tensor>> tensors_;
};

/// What one fused or foreach call works on: parameters of a group that have a gradient. All tensors are fp32; what is stored in 16 bits is
/// here as a copy, which `write_back` puts back, rounded to nearest.
struct TensorLists {
  std::vector<const Parameter*> parameters;
  std::vector<at::Tensor> masters;
  std::vector<at::Tensor> gradients;
  std::vector<std::vector<at::Tensor>> slots;             // one list a kind
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // stored, working

  bool empty() const { return masters.empty(); }
  void write_back();
};
TensorLists lists_of(const ParamGroup& group, Slots& slots);

}  // namespace kf
