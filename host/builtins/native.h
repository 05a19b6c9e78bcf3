#pragma once
// Pieces of the list of native parts (builtins.cpp).

#include <string>
#include <utility>

#include "registry/registries.h"

namespace kf {

/// What the registry says about a native part; `fields` are those of its own table.
inline config::PartInfo native(std::string name, std::string doc, std::vector<config::Row> fields = {}) {
  return {std::move(name), std::move(doc), "native", std::move(fields)};
}

void add_native_optimizers(Registries& registries);

}  // namespace kf
