#include "parity/weights.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "core/text.h"
#include "model/build.h"

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
      if (test.has_tensor("weights." + view.name)) {
        view.of(parameter->master).copy_(test.tensor("weights." + view.name));
      }
    }
    parameter->publish();
  }
  return model;
}

at::Tensor gradient_of(const Parameter& parameter) {
  const at::Tensor gradient = parameter.gradient();
  return gradient.defined() ? gradient : at::zeros(parameter.shape);
}

}  // namespace kf::parity
