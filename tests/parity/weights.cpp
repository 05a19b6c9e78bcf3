#include "parity/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "model/transformer/build.h"

namespace kf::parity {
namespace {

void check_names(const Case& test, Model& model, Comparison& out) {
  std::vector<std::string> ours;
  for (const ParameterPtr& parameter : model.parameters()) {
    for (const StoredView& view : parameter->stored()) {
      if (parameter->counted || test.has_tensor("weights." + view.name)) {
        ours.push_back(view.name);
      }
    }
  }
  std::vector<std::string> theirs = test.tensors("weights.");
  for (const auto& [alias, listed] : model.aliases()) {  // a shared weight stands under any of its names, or under several
    const auto found = std::find(theirs.begin(), theirs.end(), alias);
    if (found != theirs.end() && test.has_tensor("weights." + listed)) {
      theirs.erase(found);
    } else if (found != theirs.end()) {
      *found = listed;
    }
  }
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  out.require("names", ours == theirs, format("the model has the weights {}, the case {}", join(ours, " "), join(theirs, " ")));
  if (const Node* aliases = test.get("aliases")) {
    Table found;
    for (const auto& [alias, name] : model.aliases()) {
      found[alias] = Node(name);
    }
    out.require("aliases", same(Node(found), *aliases), format("aliases are {}, expected {}", shown(Node(found)), shown(*aliases)));
  }
}

}  // namespace

std::shared_ptr<Model> model_of(const Case& test, const config::Config& config, const Registries& registries, at::ScalarType compute,
                                Comparison& out) {
  std::shared_ptr<Model> model = build_model(config, registries);
  check_names(test, *model, out);
  materialize(*model, at::kCPU, compute, 0);
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : model->parameters()) {
    for (const StoredView& view : parameter->stored()) {
      if (!names_in(test, *model, "weights.", view.name).empty()) {
        view.of(parameter->master).copy_(tensor_in(test, *model, "weights.", view.name));
      }
    }
    parameter->publish();
  }
  return model;
}

std::vector<std::string> names_in(const Case& test, Model& model, const std::string& prefix, const std::string& name) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& candidate) {
    if (test.has_tensor(prefix + candidate)) {
      names.push_back(prefix + candidate);
    }
  };
  add(name);
  for (const auto& [alias, listed] : model.aliases()) {
    if (listed == name) {
      add(alias);
    }
  }
  return names;
}

at::Tensor tensor_in(const Case& test, Model& model, const std::string& prefix, const std::string& name) {
  const std::vector<std::string> names = names_in(test, model, prefix, name);
  KF_CHECK(!names.empty(), Code::other, "the case has no {}{}", prefix, name);
  at::Tensor first = test.tensor(names.front());
  for (const std::string& other : names) {
    KF_CHECK(at::equal(first, test.tensor(other)), Code::other, "{} and {} are one tensor in the model, but differ in the case",
             names.front(), other);
  }
  return first;
}

at::Tensor gradient_of(const Parameter& parameter) {
  const at::Tensor gradient = parameter.gradient();
  return gradient.defined() ? gradient : at::zeros(parameter.shape);
}

}  // namespace kf::parity
