#pragma once
// State tensors beside the parameters, one of each kind per parameter, and their way into checkpoints.

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/adamw/wide_lists.h"
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
    at::ScalarType type = at::kFloat;  // in memory; the arithmetic is fp32. Blockwise types (kernels/adamw/blockwise.h): not of embeddings
                                       // and small weights, whose state is fp32 all the same
    std::function<std::vector<std::int64_t>(const Parameter&)> shape = {};  // of zeros; unset takes the parameter's
  };

  explicit Slots(std::vector<Kind> kinds) : kinds_(std::move(kinds)) {}

  std::size_t size() const { return kinds_.size(); }
  /// The tensors of `parameter`, in the order of the kinds.
  std::vector<at::Tensor>& of(const Parameter& parameter);
  bool contains(const Parameter& parameter) const { return own_.count(parameter.name) > 0; }

  /// What is in 8 bits is saved in fp32, from which `load` makes the same numbers again, also of other parts of a weight where these end
  /// with a block.
  void save(OptimizerState& state) const;
  /// Throws Code::checkpoint for a missing or misshapen tensor; `known` are the parameters that may appear. Other types are cast.
  void load(const OptimizerState& state, const std::vector<ParamGroup>& known);

 private:
  bool holds_all(const OptimizerState& state, const Parameter& parameter) const;
  /// `stored` as a slot; undefined where it has another shape.
  at::Tensor loaded(const Kind& kind, const Parameter& parameter, const at::Tensor& stored, bool owned) const;
  at::Tensor make(const Kind& kind, const Parameter& parameter) const;

  /// The state of a weight.
  struct Own {
    std::vector<at::Tensor> tensors;
    std::vector<std::int64_t> sizes;  // of the weight, or of this rank's part
  };

  std::vector<Kind> kinds_;
  std::map<std::string, Own> own_;
};

/// In 8 bits: fewer numbers than this stay fp32, as in bitsandbytes.
inline constexpr std::int64_t kSmallestBlockwise = 4096;
/// The type in which the state of `weight` is that is to be in `type`.
at::ScalarType state_type_of(const Parameter& weight, at::ScalarType type);

/// What one fused or foreach call works on: parameters of a group that have a gradient. What is stored in fewer bits is here as an fp32
/// copy, which `write_back` puts back; or, for kernels that read and write it themselves, as it is.
struct TensorLists {
  std::vector<Parameter*> parameters;
  std::vector<at::Tensor> masters;
  std::vector<at::Tensor> gradients;
  std::vector<std::vector<at::Tensor>> slots;  // one list a kind
  WorkingCopies copies;

  bool empty() const { return masters.empty(); }
  void write_back() const { copies.write_back(); }
};
TensorLists lists_of(const ParamGroup& group, Slots& slots);
TensorLists stored_lists_of(const ParamGroup& group, Slots& slots);

}  // namespace kf
