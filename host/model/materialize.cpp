// Storage and first values of the weights.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "core/error.h"
#include "model/model.h"

namespace kf {
namespace {

/// A seed for one parameter: FNV-1a of its name, mixed with the run's seed by SplitMix64's finaliser.
std::uint64_t seed_of(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::uint64_t mixed = hash + seed * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

/// Always drawn on the CPU in fp32, so that every device starts from the same weights.
at::Tensor first_values(const Parameter& parameter, std::uint64_t seed) {
  at::Tensor values = at::empty(parameter.shape, at::kFloat);
  switch (parameter.init.kind) {
    case Init::Kind::ones: return values.fill_(1);
    case Init::Kind::zeros: return values.zero_();
    case Init::Kind::normal: break;
  }
  return values.normal_(0, parameter.init.std, at::detail::createCPUGenerator(seed_of(seed, parameter.name)));
}

}  // namespace

void materialize(Model& model, at::Device device, at::ScalarType compute, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : model.parameters()) {
    parameter->master = first_values(*parameter, seed).to(device);
    const bool low = compute != at::kFloat && parameter->shape.size() >= 2;
    parameter->value = low ? parameter->master.to(compute) : parameter->master;
    parameter->value.set_requires_grad(parameter->trainable);
  }
}

std::int64_t count_parameters(const ParameterList& parameters) {
  std::int64_t count = 0;
  for (const ParameterPtr& parameter : parameters) {
    count += parameter->numel();
  }
  return count;
}

}  // namespace kf
