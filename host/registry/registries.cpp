#include "registry/registries.h"

#include "config/schema/config.h"

namespace kf {

config::Catalog Registries::catalog() const {
  config::Catalog out;
  const auto add = [&](const auto& registry) { out[registry.kind()] = registry.infos(); };
  add(model);
  add(block);
  add(attention);
  add(norm);
  add(mlp);
  add(router);
  add(loss);
  add(optimizer);
  add(scheduler);
  add(dataset);
  add(transform);
  add(tokenizer);
  add(sampler);
  add(metric);
  add(sink);
  add(ckpt_strategy);
  add(phase);
  add(hook);
  add(parallel_plan);
  return out;
}

const config::PartOptions& Registries::options_of(const config::Config& config, const std::string& kind, const std::string& name) {
  static const config::PartOptions none;
  const auto found = config.parts.find(kind + "." + name);
  return found == config.parts.end() ? none : found->second;
}

}  // namespace kf
