#pragma once
// The rows of fields.def as data: types, defaults, checks and docs, and the way from a row to its member of Config.

#include <string>
#include <string_view>
#include <vector>

#include "config/schema/config.h"
#include "config/schema/row.h"

namespace kf::config {

/// One section of the settings.
struct Section {
  std::string name;
  std::string doc;
};

/// In the order of fields.def.
const std::vector<Section>& sections();
const std::vector<Row>& rows();
/// Null when there is none.
const Row* find_row(std::string_view key);
bool is_section(std::string_view name);

}  // namespace kf::config
