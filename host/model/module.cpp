#include "model/module.h"

#include <algorithm>

#include "core/error.h"

namespace kf {

template <class Visit>
void Module::walk(const std::string& prefix, Visit&& visit) const {
  for (const auto& [name, parameter] : parameters_) {
    visit(prefix + name, parameter);
  }
  for (const auto& [name, child] : children_) {
    child->walk(name.empty() ? prefix : prefix + name + ".", visit);
  }
}

ParameterList Module::parameters() {
  ParameterList list;
  walk("", [&](const std::string& name, const ParameterPtr& parameter) {
    if (std::find(list.begin(), list.end(), parameter) == list.end()) {
      parameter->name = name;
      list.push_back(parameter);
    }
  });
  return list;
}

std::vector<std::pair<std::string, std::string>> Module::aliases() {
  parameters();  // gives every parameter its name: the first one met
  std::vector<std::pair<std::string, std::string>> found;
  walk("", [&](const std::string& name, const ParameterPtr& parameter) {
    if (name != parameter->name) {
      found.emplace_back(name, parameter->name);
    }
  });
  return found;
}

std::vector<std::pair<std::string, ParameterPtr>> Module::named_parameters() const {
  std::vector<std::pair<std::string, ParameterPtr>> found;
  walk("", [&](const std::string& name, const ParameterPtr& parameter) { found.emplace_back(name, parameter); });
  return found;
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) {
    child->train(on);
  }
}

ParameterPtr Module::add_parameter(std::string name, std::vector<std::int64_t> shape, Init init, Role role) {
  auto parameter = std::make_shared<Parameter>();
  parameter->shape = std::move(shape);
  parameter->init = std::move(init);
  parameter->role = role;
  parameters_.emplace_back(std::move(name), parameter);
  return parameter;
}

void Module::share_parameter(std::string name, ParameterPtr parameter) { parameters_.emplace_back(std::move(name), std::move(parameter)); }

}  // namespace kf
