#include "data/source/part_dataset.h"

#include "config/schema/config.h"
#include "core/error.h"
#include "registry/registries.h"

namespace kf {

OpenSource open_part(const config::Config& config, const Registries* registries, const std::string& name, const std::string& key) {
  KF_CHECK(registries != nullptr, Code::config, "{}.dataset = \"{}\": there are no registered data sets here", key, name);
  return {make_part(registries->dataset, name, config, *registries, config.train.seq_len), false, std::nullopt};
}

}  // namespace kf
