#pragma once
// The elementwise middle of a feed-forward layer, plain or gated, for dense layers and experts alike.

#include <ATen/core/Tensor.h>

#include <string>

#include "kernels/gate/gate.h"
#include "kernels/kernels.h"

namespace kf {

struct PartArgs;

class Activation {
 public:
  /// `name`: silu, gelu (erf), gelu_tanh, relu, relu2 (squared), quick_gelu (x sigmoid(1.702 x)), tanh, or swiglu_oai, which is
  /// gate sigmoid(1.702 gate) (up + 1) when gated (gpt-oss). `limit` > 0 clamps gate to at most limit and up to [-limit, limit].
  Activation(const std::string& name, bool gated, double limit, bool fp32, const Kernels& kernels);

  /// act(x), (.., F) -> (.., F). For layers without a gate.
  at::Tensor plain(const at::Tensor& x) const;
  /// act(gate) * up, both (.., F). For layers with one.
  at::Tensor gate(const at::Tensor& gate, const at::Tensor& up) const;

  bool gated() const { return gated_; }
  /// Whether `gate` is a kernel's act(gate) * up, and of which kind.
  bool is_kernel() const { return kernel_ != nullptr; }
  GateKind kind() const { return kind_; }

 private:
  GateKind kind_ = GateKind::silu;
  bool gated_ = true;
  double up_offset_ = 0;
  double limit_ = 0;
  bool fp32_ = false;
  at::Tensor (*kernel_)(GateKind kind, const at::Tensor& gate, const at::Tensor& up) = nullptr;  // null: no kernel computes this one
};

/// By model.activation, mlp_gated, mlp_act_limit and act_fp32; `name` is the activation of the native mlp part.
Activation activation_of(const PartArgs& args, const std::string& name);

}  // namespace kf
