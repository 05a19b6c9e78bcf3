#pragma once
// What the schema must know of a registered part (an optimizer, a hook, ...): its name, its own fields. No factories here.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/tree/node.h"

namespace kf::config {

/// One field of a part's own table, `[optimizer.my_opt]`. The same shape for native and Lua parts.
struct PartField {
  enum class Type { integer, real, boolean, string, list };
  std::string name;
  Type type = Type::real;
  std::optional<Node> fallback;  // absent: the user must give it
  std::optional<double> min;     // inclusive
  std::optional<double> max;     // inclusive
  std::vector<std::string> choices;
  std::string doc;
};

/// A registered part as `kf-host registry` lists it.
struct PartInfo {
  std::string name;
  std::string doc;
  std::string origin;  // "native" or "recipe.lua:12"
  std::vector<PartField> fields;
};

/// Kind ("optimizer", "norm", ...) to its parts, in the order of registration. The schema's `registered(kind)` asks it.
using Catalog = std::map<std::string, std::vector<PartInfo>>;

/// The checked options of one part: every declared field, defaults filled in.
using PartOptions = Table;

}  // namespace kf::config
