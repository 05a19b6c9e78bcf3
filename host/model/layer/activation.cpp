#include "model/layer/activation.h"

#include <ATen/ATen.h>

#include <map>

#include "config/plan/derived.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {
namespace {

using Function = at::Tensor (*)(const at::Tensor&);

Function function_of(const std::string& name) {
  static const std::map<std::string, Function> all{
      {"silu", [](const at::Tensor& x) { return at::silu(x); }},
      {"gelu", [](const at::Tensor& x) { return at::gelu(x); }},
      {"gelu_tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }},
      {"relu", [](const at::Tensor& x) { return at::relu(x); }},
      {"relu2", [](const at::Tensor& x) { return at::relu(x).square(); }},
      {"quick_gelu", [](const at::Tensor& x) { return x * at::sigmoid(x * 1.702); }},
      {"tanh", [](const at::Tensor& x) { return at::tanh(x); }},
      {"swiglu_oai", [](const at::Tensor& x) { return x * at::sigmoid(x * 1.702); }},
  };
  const auto found = all.find(name);
  KF_CHECK(found != all.end(), Code::config, "there is no activation '{}'", name);
  return found->second;
}

}  // namespace

Activation::Activation(const std::string& name, bool gated, double limit, bool fp32, const Kernels& kernels)
    : function_(function_of(name)),
      gated_(gated),
      up_offset_(name == "swiglu_oai" ? 1 : 0),
      limit_(limit),
      fp32_(fp32),
      kernel_(name == "silu" && limit == 0 && !fp32 ? kernels.gate : nullptr) {}

at::Tensor Activation::plain(const at::Tensor& x) const {
  const at::Tensor clamped = limit_ > 0 ? x.clamp_max(limit_) : x;
  return fp32_ ? function_(clamped.to(at::kFloat)).to(x.scalar_type()) : function_(clamped);
}

at::Tensor Activation::gate(const at::Tensor& gate, const at::Tensor& up) const {
  if (kernel_ != nullptr) {
    return kernel_(gate, up);
  }
  const at::Tensor linear = limit_ > 0 ? up.clamp(-limit_, limit_) : up;
  return plain(gate) * (up_offset_ != 0 ? linear + up_offset_ : linear);
}

Activation activation_of(const PartArgs& args, const std::string& name) {
  const config::ModelConfig& m = args.config.model;
  return Activation(name, config::mlp_gated(m), m.mlp_act_limit, m.act_fp32, *args.kernels);
}

}  // namespace kf
