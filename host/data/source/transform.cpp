#include "data/source/transform.h"

#include "config/schema/config.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {

std::vector<std::unique_ptr<Transform>> make_transforms(const std::vector<std::string>& names, const config::Config& config,
                                                        const Registries* registries) {
  KF_CHECK(names.empty() || registries != nullptr, Code::config, "transforms = [{}]: there are no registered transforms here",
           join(names, ", "));
  std::vector<std::unique_ptr<Transform>> out;
  for (const std::string& name : names) {
    out.push_back(make_part(registries->transform, name, config, *registries));
  }
  return out;
}

}  // namespace kf
