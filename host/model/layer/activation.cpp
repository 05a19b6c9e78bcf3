#include "model/layer/activation.h"

#include <ATen/ATen.h>

#include <map>

#include "config/plan/derived.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {
namespace {

GateKind kind_of(const std::string& name) {
  static const std::map<std::string, GateKind> all{{"silu", GateKind::silu},           {"gelu", GateKind::gelu},
                                                   {"gelu_tanh", GateKind::gelu_tanh}, {"relu", GateKind::relu},
                                                   {"relu2", GateKind::relu2},         {"quick_gelu", GateKind::quick_gelu},
                                                   {"tanh", GateKind::tanh},           {"swiglu_oai", GateKind::quick_gelu}};
  const auto found = all.find(name);
  KF_CHECK(found != all.end(), Code::config, "there is no activation '{}'", name);
  return found->second;
}

}  // namespace

Activation::Activation(const std::string& name, bool gated, double limit, bool fp32, const Kernels& kernels)
    : kind_(kind_of(name)),
      gated_(gated),
      up_offset_(name == "swiglu_oai" ? 1 : 0),
      limit_(limit),
      fp32_(fp32),
      kernel_(up_offset_ == 0 && limit == 0 && !fp32 ? kernels.gate : nullptr) {}

at::Tensor Activation::plain(const at::Tensor& x) const {
  const at::Tensor clamped = limit_ > 0 ? x.clamp_max(limit_) : x;
  return fp32_ ? activated(kind_, clamped.to(at::kFloat)).to(x.scalar_type()) : activated(kind_, clamped);
}

at::Tensor Activation::gate(const at::Tensor& gate, const at::Tensor& up) const {
  if (kernel_ != nullptr) {
    return kernel_(kind_, gate, up);
  }
  const at::Tensor linear = limit_ > 0 ? up.clamp(-limit_, limit_) : up;
  return plain(gate) * (up_offset_ != 0 ? linear + up_offset_ : linear);
}

Activation activation_of(const PartArgs& args, const std::string& name) {
  const config::ModelConfig& m = args.config.model;
  return Activation(name, config::mlp_gated(m), m.mlp_act_limit, m.act_fp32, *args.kernels);
}

}  // namespace kf
