#pragma once
// What is trained beside a linear layer whose own weight stays as it is: the kind of parts that adapter.name chooses.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/layer/tensor_ranks.h"
#include "model/module.h"

namespace kf {

struct Moment;

/// The layer that an adapter is for.
struct AdapterPlace {
  std::string layer;  // "layers.0.attention.q_proj"
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::shared_ptr<const Moment> moment = {};  // of the model, for dropout
};

class LinearAdapter : public Module {
 public:
  virtual at::Tensor delta(const at::Tensor& x) const = 0;  // (.., in) -> (.., out), added to the layer's own result
  /// The weight (out, in) of a plain layer that gives in evaluation what the layer with `weight` and this adapter gives.
  virtual at::Tensor merged(const at::Tensor& weight) const = 0;
  /// How the layer's weight is divided: its own weights follow where they can, or stay whole.
  virtual void split(Split /*how*/, std::int64_t /*unit*/, const TensorRanks& /*ranks*/) {}
};

}  // namespace kf
