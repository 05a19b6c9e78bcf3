#include "model/freeze.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/name_pattern.h"

namespace kf {
namespace {

/// Names with the weights they stand for.
struct Named {
  std::vector<std::string> names;
  ParameterList parameters;
};

Named all_names(Model& model) {
  Named out;
  std::map<std::string, ParameterPtr> listed;
  for (const ParameterPtr& parameter : model.parameters()) {
    listed[parameter->name] = parameter;
    out.names.push_back(parameter->name);
    out.parameters.push_back(parameter);
  }
  for (const auto& [alias, name] : model.aliases()) {
    out.names.push_back(alias);
    out.parameters.push_back(listed.at(name));
  }
  return out;
}

void set_trainable(const Named& named, const std::vector<bool>& chosen, bool trainable) {
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] && !named.parameters[i]->buffer) {
      named.parameters[i]->trainable = trainable;
    }
  }
}

}  // namespace

void freeze(Model& model, const config::TrainConfig& train) {
  if (train.trainable.empty() && train.frozen.empty()) {
    return;
  }
  const Named named = all_names(model);
  if (!train.trainable.empty()) {
    const std::vector<bool> chosen = match_names(train.trainable, named.names, "train.trainable");
    std::vector<bool> others;  // adapters train in any case
    for (const ParameterPtr& parameter : named.parameters) {
      others.push_back(!parameter->added);
    }
    set_trainable(named, others, false);
    set_trainable(named, chosen, true);
  }
  set_trainable(named, match_names(train.frozen, named.names, "train.frozen"), false);
  KF_CHECK(std::any_of(named.parameters.begin(), named.parameters.end(), [](const ParameterPtr& p) { return p->trainable; }), Code::config,
           "train.trainable and train.frozen leave no weight to train");
}

}  // namespace kf
