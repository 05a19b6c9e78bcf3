#pragma once
// The position-wise layer of a block.

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/linear.h"

namespace kf {

class Mlp : public Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) const = 0;  // (.., C) -> (.., C)
};

struct MlpOptions {
  std::int64_t dim = 0;       // C
  std::int64_t hidden = 0;    // F
  std::int64_t n_layers = 0;  // for the init of down_proj
  double init_std = 0.02;
};

using Activation = at::Tensor (*)(const at::Tensor&);

/// down(act(gate(x)) * up(x)); with SiLU this is SwiGLU (Shazeer 2020, equation 6).
class GatedMlp final : public Mlp {
 public:
  GatedMlp(const MlpOptions& options, Activation activation);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  Activation activation_;
  std::shared_ptr<Linear> gate_, up_, down_;
};

/// down(act(up(x))).
class PlainMlp final : public Mlp {
 public:
  PlainMlp(const MlpOptions& options, Activation activation);
  at::Tensor forward(const at::Tensor& x) const override;

 private:
  Activation activation_;
  std::shared_ptr<Linear> up_, down_;
};

at::Tensor silu(const at::Tensor& x);
at::Tensor gelu(const at::Tensor& x);  // exact, with erf
at::Tensor relu(const at::Tensor& x);

}  // namespace kf
