#include <ATen/ATen.h>

#include "optim/optimizer.h"

namespace kf {

std::vector<ParamGroup> decay_groups(const ParameterList& parameters, double weight_decay) {
  ParamGroup decay{{}, weight_decay};
  ParamGroup rest{{}, 0};
  for (const ParameterPtr& parameter : parameters) {
    if (!parameter->trainable || parameter->buffer) {
      continue;
    }
    const bool decays = parameter->shape.size() > 1 && parameter->name.find("bias") == std::string::npos;
    (decays ? decay : rest).parameters.push_back(parameter);
  }
  return {decay, rest};
}

}  // namespace kf
