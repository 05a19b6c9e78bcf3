// Storage and first values of the weights.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "model/first_values.h"
#include "model/model.h"
#include "model/weight_unit.h"

namespace kf {
namespace {

bool reads_low(const Parameter& p, at::ScalarType compute) { return compute != at::kFloat && p.shape.size() >= 2 && !p.keep_fp32; }

/// fp32, on `device`.
at::Tensor first_or_empty(const Parameter& p, std::uint64_t seed, const Range& range, at::Device device) {
  return p.unfilled ? at::empty(range.size, at::TensorOptions(device).dtype(at::kFloat)) : first_values(p, seed, range).to(device);
}

/// `into`: the memory of its value; undefined for some of its own.
void make_whole(Parameter& p, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept, const at::Tensor& into) {
  const at::Tensor wide = first_or_empty(p, seed, p.held(), device);
  const bool low = reads_low(p, compute);
  p.value = !low ? wide : p.unfilled ? at::empty_like(wide, at::TensorOptions(compute)) : wide.to(compute);
  if (into.defined()) {
    p.value = into.copy_(p.value).detach();
  }
  p.master = !low ? p.value : kept != compute ? wide : p.value;
  if (p.is_frozen() && p.master.scalar_type() != p.value.scalar_type()) {
    p.master = at::Tensor();
  }
}

/// How many weights from `first` on lie in one piece of memory: those that follow each other, as this rank holds them.
std::size_t run_of(const ParameterList& parameters, std::size_t first) {
  std::size_t end = first;
  while (end + 1 < parameters.size() && parameters[end]->next_follows && parameters[end]->placement.rows() == nullptr &&
         parameters[end + 1]->placement.rows() == nullptr && parameters[end]->held().size[1] == parameters[end + 1]->held().size[1]) {
    ++end;
  }
  return end + 1 - first;
}

/// The memory of the values of such a run.
std::vector<at::Tensor> memory_of(const ParameterList& parameters, std::size_t first, std::size_t count, at::Device device,
                                  at::ScalarType compute) {
  std::vector<std::int64_t> rows;
  std::int64_t all = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    rows.push_back(parameters[i]->held().size[0]);
    all += rows.back();
  }
  const at::ScalarType type = reads_low(*parameters[first], compute) ? compute : at::kFloat;
  return at::empty({all, parameters[first]->held().size[1]}, at::TensorOptions(device).dtype(type)).split_with_sizes(rows);
}

/// A rank draws its part alone. The master is that part, in the memory of the value where it stays and has the type; the value itself comes
/// from all ranks (`publish`).
void make_part(Parameter& p, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept) {
  const bool low = reads_low(p, compute);
  const bool stays = p.unit->keeps_values();
  const Range range = p.placement.of(p.shape), held = p.held();
  p.value = at::empty(stays ? held.size : Shape{0}, at::TensorOptions(device).dtype(low ? compute : at::kFloat));
  const at::Tensor first = first_or_empty(p, seed, range, device);
  if (low && kept != compute) {
    p.master = first;
  } else if (stays) {
    // Detached: autograd lets nobody look into a view that was made without gradients once the value has moved, and saves do.
    p.master = range.within(held).of(p.value).copy_(first).detach();
  } else {
    p.master = first.to(p.value.scalar_type());
  }
}

}  // namespace

void materialize(Model& model, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept,
                 const DrawsWeight& draws) {
  materialize(model.parameters(), device, compute, seed, kept, draws);
}

void materialize(const ParameterList& parameters, at::Device device, at::ScalarType compute, std::uint64_t seed, at::ScalarType kept,
                 const DrawsWeight& draws) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> memory;  // of the run of weights that the loop is in, in order
  std::size_t begin = 0;           // of it
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Parameter& p = *parameters[i];
    p.unfilled = draws && !draws(p);
    if (i - begin >= memory.size()) {
      const std::size_t count = run_of(parameters, i);
      begin = i;
      memory = count > 1 ? memory_of(parameters, i, count, device, compute) : std::vector<at::Tensor>{at::Tensor()};
    }
    p.placement.rows() == nullptr ? make_whole(p, device, compute, seed, kept, memory[i - begin])
                                  : make_part(p, device, compute, seed, kept);
    p.set_trains(p.trainable && !p.buffer);
  }
  ParameterList parts;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(parts),
               [](const ParameterPtr& p) { return p->placement.rows() != nullptr; });
  publish(parts);
}

void draw_unfilled(const ParameterList& parameters, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  ParameterList drawn;
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->unfilled) {
      parameter->kept().detach().copy_(first_values(*parameter, seed, parameter->placement.of(parameter->shape)));
      parameter->unfilled = false;
      drawn.push_back(parameter);
    }
  }
  publish(drawn);
}

void require_values(const ParameterList& parameters) {
  std::vector<std::string> names;
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->unfilled) {
      names.push_back(parameter->name);
    }
  }
  KF_CHECK(names.empty(), Code::other, "no values were drawn for {}, and nothing was loaded into it", join(names, ", "));
}

std::int64_t count_parameters(const ParameterList& parameters) {
  std::int64_t count = 0;
  for (const ParameterPtr& parameter : parameters) {
    count += parameter->counted ? parameter->numel() : 0;
  }
  return count;
}

}  // namespace kf
