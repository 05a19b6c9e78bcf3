#pragma once
// y = x W^T (+ b).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/layer/adapter.h"
#include "model/layer/tensor_ranks.h"

namespace kf {

class Linear final : public Module {
 public:
  bool observable() const override { return true; }
  /// Weight (out, in), named "weight"; with `bias` a "bias" (out) that starts at 0.
  Linear(std::int64_t in, std::int64_t out, Init init, Role role = Role::hidden, bool bias = false);
  /// Over a weight that another module owns.
  explicit Linear(ParameterPtr weight);

  at::Tensor forward(const at::Tensor& x) const;  // (.., in) -> (.., out)
  /// How its weight is divided over `ranks`, in runs of `unit` outputs (inputs) that stay together; the bias follows, and an adapter that
  /// comes later. `forward` then takes and gives what this rank has: some outputs, or, of some inputs, a share of the sum, to which the
  /// first rank adds the bias.
  void split(Split how, std::int64_t unit = 1, const TensorRanks& ranks = {});
  /// Takes and gives all from now on, the same on all ranks, whatever stands around it: it gathers its outputs, or adds up its shares.
  void stand_alone(const TensorRanks& ranks);
  /// Whether it is x W^T and nothing else, on one rank.
  bool bare() const { return bias_ == nullptr && adapter_ == nullptr && !ranks_.many(); }
  const ParameterPtr& weight() const { return weight_; }
  const ParameterPtr& bias() const { return bias_; }  // null without one

  /// From now on y = x W^T (+ b) + adapter(x). The adapter's weights are called NAME.* beside this layer's own: "q_proj.lora.a".
  void attach(const std::string& name, std::shared_ptr<LinearAdapter> adapter);
  const std::shared_ptr<LinearAdapter>& adapter() const { return adapter_; }  // null without one

 private:
  at::Tensor product(const at::Tensor& x) const;

  ParameterPtr weight_, bias_;
  TensorRanks ranks_;
  bool stands_alone_ = false;
  std::shared_ptr<LinearAdapter> adapter_;
};

}  // namespace kf
