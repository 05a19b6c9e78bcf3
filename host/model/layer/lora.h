#pragma once
// LoRA (Hu et al. 2021): adapter.name = "lora".

#include <ATen/core/Tensor.h>

#include "model/layer/adapter.h"
#include "model/layer/dropout.h"

namespace kf {

namespace config {
struct Config;
}

/// (alpha / rank) B A dropout(x). A (rank, in) starts as PEFT's, uniform within 1 / sqrt(in) (kaiming_uniform_ with a = sqrt(5)); B (out,
/// rank) starts at 0, so that a fresh adapter changes nothing.
class Lora final : public LinearAdapter {
 public:
  /// By adapter.rank, alpha and dropout.
  Lora(const config::Config& config, const AdapterPlace& place);
  at::Tensor delta(const at::Tensor& x) const override;
  at::Tensor merged(const at::Tensor& weight) const override;
  /// B has the layer's outputs, A its inputs; the other one is whole, and its gradient a share.
  void split(Split how, std::int64_t unit, const TensorRanks& ranks) override;

 private:
  /// The input behind dropout; of a part of the inputs, what is dropped of all of them.
  at::Tensor dropped(const at::Tensor& x) const;

  ParameterPtr a_, b_;
  double scale_;  // alpha / rank
  TensorRanks ranks_;
  Dropout dropout_;
  std::shared_ptr<const Moment> moment_;
};

}  // namespace kf
