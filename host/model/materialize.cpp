// Storage and first values of the weights.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "core/error.h"
#include "model/model.h"
#include "model/seed.h"
#include "model/weight_unit.h"

namespace kf {
namespace {

/// By the inverse of the distribution function over the middle 95.4 %; 0.8796 is the deviation that is left of a unit normal.
at::Tensor truncated_normal(const at::Tensor& values, double std, const at::Generator& generator) {
  const double edge = std::erf(2 / std::sqrt(2.0));
  const at::Tensor uniform = at::empty(values.sizes(), at::kDouble).uniform_(-edge, edge, generator);
  const double unit = std / 0.87962566103423978;
  return values.copy_(uniform.erfinv_().mul_(std::sqrt(2.0) * unit).clamp_(-2 * unit, 2 * unit));
}

void fill(const at::Tensor& values, const Init& init, std::uint64_t seed) {
  switch (init.kind) {
    case Init::Kind::ones: values.fill_(1); return;
    case Init::Kind::zeros: values.zero_(); return;
    case Init::Kind::constant: values.fill_(init.std); return;
    case Init::Kind::given: values.copy_(init.values); return;
    case Init::Kind::normal: values.normal_(0, init.std, at::detail::createCPUGenerator(seed)); return;
    case Init::Kind::truncated: truncated_normal(values, init.std, at::detail::createCPUGenerator(seed)); return;
  }
}

/// Always drawn on the CPU in fp32, so that every device starts from the same weights; a stack slice by slice, so that both of its forms
/// do, too.
at::Tensor first_values(const Parameter& parameter, std::uint64_t seed) {
  at::Tensor values = at::empty(parameter.shape, at::kFloat);
  if (!parameter.stack) {
    fill(values, parameter.init, seed_of(seed, parameter.name));
    return values;
  }
  for (const std::vector<StoredView>& form : parameter.forms()) {
    if (form.front().slice < 0) {
      continue;
    }
    for (const StoredView& view : form) {
      fill(view.of(values), parameter.init, seed_of(seed, view.name));
    }
  }
  return values;
}

/// The master of a weight that is cut: its part, in memory of its own unless it is that of a value that stays.
void take_part(Parameter& parameter) {
  const at::Tensor part = parameter.placement.of(parameter.shape).of(parameter.master);
  const bool shared = parameter.master.is_same(parameter.value);
  parameter.master = shared && parameter.unit->keeps_values() ? part : part.clone();
  if (!parameter.unit->keeps_values()) {
    parameter.value = at::empty({0}, parameter.value.options());
  }
}

}  // namespace

void materialize(Model& model, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept) {
  materialize(model.parameters(), device, compute, seed, kept);
}

void materialize(const ParameterList& parameters, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : parameters) {
    const at::Tensor first = first_values(*parameter, seed).to(device);
    const bool low = compute != at::kFloat && parameter->shape.size() >= 2 && !parameter->keep_fp32;
    parameter->value = low ? first.to(compute) : first;
    parameter->master = low && kept == compute ? parameter->value : first;
    if (!parameter->placement.whole()) {
      take_part(*parameter);
    }
    parameter->set_trains(parameter->trainable && !parameter->buffer);
  }
}

std::int64_t count_parameters(const ParameterList& parameters) {
  std::int64_t count = 0;
  for (const ParameterPtr& parameter : parameters) {
    count += parameter->counted ? parameter->numel() : 0;
  }
  return count;
}

}  // namespace kf
