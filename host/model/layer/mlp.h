#pragma once
// The position-wise layer of a block.

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/layer/activation.h"
#include "model/layer/linear.h"

namespace kf {

struct ForwardContext;

namespace config {
struct ModelConfig;
}

class Mlp : public Module {
 public:
  bool observable() const override { return true; }
  virtual at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const = 0;  // (.., C) -> (.., C)
  /// Whether ranks along tp divide it. `share` is then what stands in `forward` between TensorRanks::enter and leave, for who enters and
  /// leaves once for several layers. No observer sees it.
  virtual bool divided() const { return false; }
  virtual at::Tensor share(const at::Tensor& entered) const;
};

struct MlpOptions {
  std::int64_t dim = 0;     // C
  std::int64_t hidden = 0;  // F
  Init in, out;             // of gate and up, of down
  bool bias = false;
  TensorRanks ranks = {};  // over whom F is divided
  const Kernels* kernels = &fused_kernels();
};

/// down(act(gate(x)) * up(x)); with SiLU this is SwiGLU (Shazeer 2020, equation 6).
class GatedMlp final : public Mlp {
 public:
  GatedMlp(const MlpOptions& options, const Activation& activation);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;
  bool divided() const override { return ranks_.many(); }
  at::Tensor share(const at::Tensor& entered) const override;

 private:
  /// By the kernel that is one node; undefined where the formula has to do it.
  at::Tensor as_one_node(const at::Tensor& x) const;

  Activation activation_;
  TensorRanks ranks_;
  const Kernels* kernels_;
  std::shared_ptr<Linear> gate_, up_, down_;
};

/// down(act(up(x))).
class PlainMlp final : public Mlp {
 public:
  PlainMlp(const MlpOptions& options, const Activation& activation);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;
  bool divided() const override { return ranks_.many(); }
  at::Tensor share(const at::Tensor& entered) const override;

 private:
  Activation activation_;
  TensorRanks ranks_;
  std::shared_ptr<Linear> up_, down_;
};

/// Of a layer dim -> hidden -> dim, by model.init and mlp_bias.
MlpOptions mlp_options(const PartArgs& args, std::int64_t dim, std::int64_t hidden);
/// The native mlp with this activation, gated or not as the settings say.
std::shared_ptr<Mlp> native_mlp(const PartArgs& args, const std::string& activation, std::int64_t dim, std::int64_t hidden);

}  // namespace kf
