#include "model/transformer/adapters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/name_pattern.h"

namespace kf {
namespace {

using NamedLayers = std::vector<std::pair<std::string, std::shared_ptr<Linear>>>;

void find_layers(const Module& module, const std::string& prefix, std::set<const Module*>& seen, NamedLayers& found) {
  for (const auto& [name, child] : module.children()) {
    if (!seen.insert(child.get()).second) {
      continue;
    }
    const std::string path = name.empty() ? prefix : prefix.empty() ? name : prefix + "." + name;
    if (auto layer = std::dynamic_pointer_cast<Linear>(child)) {
      found.emplace_back(path, std::move(layer));
    } else {
      find_layers(*child, path, seen, found);
    }
  }
}

std::string without_end(const std::string& name, std::string_view end) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : name;
}

/// What a target can name: linear layers, and matrices that others hold, to say that these take no adapter.
struct Candidates {
  std::vector<std::string> names;
  std::vector<std::shared_ptr<Linear>> layers;  // null for a matrix without a layer
};

Candidates candidates_of(Model& model) {
  Candidates out;
  std::set<std::string> known;
  for (auto& [name, layer] : linear_layers(model)) {
    known.insert(name);
    out.names.push_back(name);
    out.layers.push_back(std::move(layer));
  }
  for (const ParameterPtr& parameter : model.parameters()) {
    if (const std::string name = without_end(parameter->name, ".weight"); parameter->shape.size() >= 2 && known.insert(name).second) {
      out.names.push_back(name);
      out.layers.push_back(nullptr);
    }
  }
  return out;
}

/// "q_proj" means every layer whose name ends in it, as in PEFT.
std::vector<std::string> patterns_of(const std::vector<std::string>& targets, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& target : targets) {
    const bool plain = !target.starts_with("re:") && target.find_first_of("*?") == std::string::npos;
    const bool whole = std::find(names.begin(), names.end(), target) != names.end();
    out.push_back(plain && !whole ? "*." + target : target);
  }
  return out;
}

}  // namespace

NamedLayers linear_layers(const Model& model) {
  NamedLayers found;
  std::set<const Module*> seen;
  find_layers(model, "", seen, found);
  return found;
}

void attach_adapters(Model& model, const config::Config& config, const Registries& registries) {
  const config::AdapterConfig& adapter = config.adapter;
  if (adapter.name.empty()) {
    return;
  }
  const Candidates all = candidates_of(model);
  const std::vector<bool> chosen = match_names(patterns_of(adapter.targets, all.names), all.names, "adapter.targets");
  for (const ParameterPtr& parameter : model.parameters()) {
    parameter->trainable = parameter->trainable && parameter->buffer;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) {
      continue;
    }
    const std::shared_ptr<Linear>& layer = all.layers[i];
    KF_CHECK(layer && layer->weight()->role == Role::hidden, Code::config,
             "adapter.targets names {}, whose weight is read by others than its layer (embeddings, heads, routers, stacks of experts), so "
             "it takes no adapter; adapters are for linear layers inside of blocks",
             all.names[i]);
    const std::vector<std::int64_t>& shape = layer->weight()->shape;
    layer->attach(adapter.name, make_part(registries.adapter, adapter.name, config, registries,
                                          AdapterPlace{all.names[i], shape[1], shape[0], model.moment()}));
    for (const auto& [name, parameter] : layer->adapter()->named_parameters()) {
      parameter->added = true;
    }
  }
  model.parameters();  // names the new ones
}

std::vector<std::pair<std::string, at::Tensor>> merged_weights(Model& model) {
  std::map<const Parameter*, std::shared_ptr<LinearAdapter>> adapters;
  for (const auto& [name, layer] : linear_layers(model)) {
    if (layer->adapter()) {
      adapters[layer->weight().get()] = layer->adapter();
    }
  }
  const at::NoGradGuard no_grad;
  std::vector<std::pair<std::string, at::Tensor>> out;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->added) {
      continue;
    }
    const auto found = adapters.find(parameter.get());
    const at::Tensor whole = found == adapters.end() ? parameter->kept() : found->second->merged(parameter->kept());
    for (const StoredView& view : parameter->stored()) {
      out.emplace_back(view.name, view.of(whole));
    }
  }
  return out;
}

}  // namespace kf
