#include "registry/registries.h"

#include "config/schema/config.h"

namespace kf {

config::Catalog Registries::catalog() const {
  config::Catalog out;
  for_each_kind(*this, [&](const auto& registry) { out[registry.kind()] = registry.infos(); });
  return out;
}

const config::PartOptions& Registries::options_of(const config::Config& config, const std::string& kind, const std::string& name) {
  static const config::PartOptions none;
  const auto found = config.parts.find(kind + "." + name);
  return found == config.parts.end() ? none : found->second;
}

}  // namespace kf
