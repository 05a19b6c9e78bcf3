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

Watch::Watch(const config::MetricsConfig& metrics, ParameterList parameters, const Optimizer& optimizer, const World& world)
    : kinds_(metrics.watch), interval_(metrics.watch_interval), per_param_(metrics.watch_per_param), optimizer_(optimizer), world_(world) {
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(parameters_),
               [](const ParameterPtr& parameter) { return parameter->trainable && !parameter->buffer; });
}

bool Watch::wants(const std::string& kind) const { return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end(); }

bool Watch::counts(const Parameter& parameter) const { return world_.along(Axis::dp_replicate).rank() == 0 && parameter.first; }

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
    if (const at::Tensor gradient = wants("grads") ? parameter->gradient() : at::Tensor(); gradient.defined() && counts(*parameter)) {
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
    if (!counts(*parameters_[i])) {
      continue;
    }
    add("updates", place(parameters_[i]->name), parameters_[i]->master.detach() - before_[i]);
  }
  before_.clear();
}

void Watch::add_state() {
  std::map<std::string, const Parameter*> by_name;
  for (const ParameterPtr& parameter : parameters_) {
    by_name[parameter->name] = parameter.get();
  }
  for (const auto& [name, tensor] : optimizer_.state().tensors) {  // "exp_avg.layers.0.attention.q_proj.weight"
    const std::size_t dot = name.find('.');
    if (tensor.dim() == 0 || dot == std::string::npos) {
      continue;  // counters of steps are no state to watch
    }
    const auto weight = by_name.find(name.substr(dot + 1));
    if (weight == by_name.end() ? world_.rank() == 0 : counts(*weight->second)) {
      add("opt_state/" + name.substr(0, dot), place(name.substr(dot + 1)), tensor);
    }
  }
}

/// Squares and counts by key. Ranks have different weights, so different keys: they tell each other text.
std::map<std::string, std::pair<double, double>> Watch::sums_of_all() const {
  std::map<std::string, std::pair<double, double>> out;
  if (!sums_.empty()) {
    std::vector<at::Tensor> squares;
    for (const auto& [key, sum] : sums_) {
      squares.push_back(sum.squares);
    }
    const at::Tensor read = at::stack(squares).to(at::kCPU);
    const float* value = read.const_data_ptr<float>();
    for (const auto& [key, sum] : sums_) {
      out[key] = {*value++, sum.count};
    }
  }
  if (world_.size() == 1) {
    return out;
  }
  std::string mine;
  for (const auto& [key, sum] : out) {
    mine += format("{} {} {}\n", sum.first, sum.second, key);
  }
  out.clear();
  for (const std::string& told : world_.all().tell(mine)) {
    for (const std::string& line : split(told, '\n')) {
      const std::vector<std::string> words = split(line, ' ');
      if (words.size() >= 3) {
        const std::string key = join({words.begin() + 2, words.end()}, " ");
        out[key].first += std::stod(words[0]);
        out[key].second += std::stod(words[1]);
      }
    }
  }
  return out;
}

Values Watch::take() {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : parameters_) {
    if (wants("params") && counts(*parameter)) {
      add("params", place(parameter->name), parameter->master);
    }
  }
  if (wants("opt_state")) {
    add_state();
  }
  if (wants(kActivations) && std::none_of(sums_.begin(), sums_.end(), [](const auto& sum) { return sum.first == kActivations; })) {
    log::warn("metrics.watch has \"activations\", but this model shows none; they are left out from here on");
    std::erase(kinds_, kActivations);
  }
  Values out;
  for (const auto& [key, sum] : sums_of_all()) {
    const auto& [square, count] = sum;
    if (key != kActivations) {  // positions of different places have no common mean
      out.emplace_back(row_key::of(row_key::watch, key), std::sqrt(key.starts_with(kActivations) ? square / std::max(1.0, count) : square));
    }
  }
  std::sort(out.begin(), out.end());
  sums_.clear();
  return out;
}

}  // namespace kf
