#include <ATen/ATen.h>

#include "config/schema/config.h"
#include "core/name_pattern.h"
#include "core/text.h"
#include "optim/optimizer.h"

namespace kf {
namespace {

bool is_matrix(const Parameter& parameter) { return parameter.shape.size() > 1 && parameter.name.find("bias") == std::string::npos; }

bool decays_by_default(const Parameter& parameter, const std::string& rule) {
  if (rule == "all" || rule == "none") {
    return rule == "all";
  }
  const bool lookup = parameter.role == Role::embedding || parameter.role == Role::head;
  return is_matrix(parameter) && (rule == "ndim2" || !lookup);
}

std::vector<ParamGroup> split(const ParameterList& parameters, const std::vector<bool>& decays, double weight_decay) {
  ParamGroup decay{{}, weight_decay, true};
  ParamGroup rest{{}, 0, false};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->trainable && !parameters[i]->buffer) {
      (decays[i] ? decay : rest).parameters.push_back(parameters[i]);
    }
  }
  return {decay, rest};
}

}  // namespace

std::vector<ParamGroup> decay_groups(const ParameterList& parameters, double weight_decay) {
  std::vector<bool> decays;
  for (const ParameterPtr& parameter : parameters) {
    decays.push_back(is_matrix(*parameter));
  }
  return split(parameters, decays, weight_decay);
}

std::vector<ParamGroup> decay_groups(const ParameterList& parameters, const config::OptimizerConfig& o) {
  std::vector<std::string> names;
  std::vector<bool> decays;
  for (const ParameterPtr& parameter : parameters) {
    names.push_back(parameter->name);
    decays.push_back(decays_by_default(*parameter, o.decay_default));
  }
  const std::vector<bool> included = match_names(o.decay_include, names, "optimizer.decay_include");
  const std::vector<bool> excluded = match_names(o.decay_exclude, names, "optimizer.decay_exclude");
  for (std::size_t i = 0; i < names.size(); ++i) {
    decays[i] = (decays[i] || included[i]) && !excluded[i];
  }
  return split(parameters, decays, o.weight_decay);
}

std::string describe_groups(const std::vector<ParamGroup>& groups) {
  std::vector<std::string> lines;
  for (const ParamGroup& group : groups) {
    std::vector<std::string> names;
    for (const ParameterPtr& parameter : group.parameters) {
      names.push_back(parameter->name);
    }
    lines.push_back((group.decays ? format("decay {}: ", group.weight_decay) : "no decay: ") + join(names, ", "));
  }
  return join(lines, "; ");
}

}  // namespace kf
