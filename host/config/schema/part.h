#pragma once
// What the schema must know of a registered part (an optimizer, a hook, ...): its name, its own fields. No factories here.

#include <map>
#include <string>
#include <vector>

#include "config/schema/row.h"

namespace kf::config {

/// A registered part as `kf-host registry` lists it.
struct PartInfo {
  std::string name;
  std::string doc;
  std::string origin;       // "native" or "recipe.lua:12"
  std::vector<Row> fields;  // of its own table, [optimizer.my_opt]
  Table entry = {};         // of a phase that is a table: what it gives of an entry of `phases`, with its places
};

/// Kind ("optimizer", "norm", ...) to its parts, in the order of registration. The schema's `registered(kind)` asks it.
using Catalog = std::map<std::string, std::vector<PartInfo>>;

/// The checked options of one part: every declared field, defaults filled in.
using PartOptions = Table;

}  // namespace kf::config
