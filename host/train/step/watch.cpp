#include "train/step/watch.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "core/text.h"
#include "metrics/names/names.h"

namespace kf {
namespace {

constexpr const char* kActivations = "activations";

at::Tensor squares_of(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor.detach(), 2, std::nullopt, /*keepdim=*/false, at::kFloat).square();
}

bool is_number(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string layer_of(const std::string& name) {
  const std::vector<std::string> words = split(name, '.');
  const auto number = std::find_if(words.begin(), words.end(), is_number);
  return number == words.end() ? words.front() : join({words.begin(), number + 1}, ".");
}

Watch::Watch(const config::MetricsConfig& metrics, ParameterList parameters, const Optimizer& optimizer)
    : kinds_(metrics.watch), interval_(metrics.watch_interval), per_param_(metrics.watch_per_param), optimizer_(optimizer) {
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(parameters_),
               [](const ParameterPtr& parameter) { return parameter->trainable && !parameter->buffer; });
}

bool Watch::wants(const std::string& kind) const { return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end(); }

void Watch::add(const std::string& kind, const std::string& place, const at::Tensor& tensor) {
  const at::Tensor squares = squares_of(tensor);
  for (const std::string& key : {kind, kind + "/" + place}) {
    auto found = std::find_if(sums_.begin(), sums_.end(), [&key](const auto& sum) { return sum.first == key; });
    if (found == sums_.end()) {
      found = sums_.insert(sums_.end(), {key, {at::zeros_like(squares), 0}});
    }
    found->second.squares = found->second.squares + squares;
    found->second.count += static_cast<double>(tensor.numel());
  }
}

void Watch::begin() {
  sums_.clear();
  before_.clear();
}

std::function<void(const std::string&, const at::Tensor&)> Watch::observer() {
  if (!wants(kActivations)) {
    return {};
  }
  return [this](const std::string& name, const at::Tensor& value) {
    const at::NoGradGuard no_grad;
    add(kActivations, name.starts_with("layer.") ? "layers." + name.substr(6) : name, value);
  };
}

void Watch::gradients() {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : parameters_) {
    if (const at::Tensor gradient = wants("grads") ? parameter->gradient() : at::Tensor(); gradient.defined()) {
      add("grads", place(parameter->name), gradient);
    }
  }
}

void Watch::before_update() {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : parameters_) {
    if (wants("updates")) {
      before_.push_back(parameter->master.detach().clone());
    }
  }
}

void Watch::after_update() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    add("updates", place(parameters_[i]->name), parameters_[i]->master.detach() - before_[i]);
  }
  before_.clear();
}

Values Watch::take() {
  const at::NoGradGuard no_grad;
  if (wants("params")) {
    for (const ParameterPtr& parameter : parameters_) {
      add("params", place(parameter->name), parameter->master);
    }
  }
  if (wants("opt_state")) {
    for (const auto& [name, tensor] : optimizer_.state().tensors) {  // "exp_avg.layers.0.attention.q_proj.weight"
      const std::size_t dot = name.find('.');
      if (tensor.dim() > 0 && dot != std::string::npos) {  // counters of steps are no state to watch
        add("opt_state/" + name.substr(0, dot), place(name.substr(dot + 1)), tensor);
      }
    }
  }
  if (wants(kActivations) && std::none_of(sums_.begin(), sums_.end(), [](const auto& sum) { return sum.first == kActivations; })) {
    log::warn("metrics.watch has \"activations\", but this model shows none; they are left out from here on");
    std::erase(kinds_, kActivations);
  }
  if (sums_.empty()) {
    return {};
  }
  std::vector<at::Tensor> squares;
  for (const auto& [key, sum] : sums_) {
    squares.push_back(sum.squares);
  }
  const at::Tensor read = at::stack(squares).to(at::kCPU);
  const float* value = read.const_data_ptr<float>();
  Values out;
  for (const auto& [key, sum] : sums_) {
    const double square = *value++;
    if (key != kActivations) {  // positions of different places have no common mean
      out.emplace_back(row_key::of(row_key::watch, key),
                       std::sqrt(key.starts_with(kActivations) ? square / std::max(1.0, sum.count) : square));
    }
  }
  std::sort(out.begin(), out.end());
  sums_.clear();
  return out;
}

}  // namespace kf
