#pragma once
// Unknown names: what was meant, and where it lives.

#include <string>
#include <vector>

#include "config/schema/part.h"

namespace kf::config {

/// The message for an unknown key of `[table]` ("" for the top level); `names` are the known ones there.
std::string unknown_key(const std::string& table, const std::string& name, const std::vector<std::string>& names);
/// The same for the tables inside sections: only their own fields are suggested.
std::string unknown_field(const std::string& table, const std::string& name, const std::vector<std::string>& names);

/// The names that a key may take which is checked against the registry of `kind`: the registered ones, their short names (silu for swiglu)
/// and those whose machinery is still to come. Empty when the kind is unknown: then nothing can be checked.
std::vector<std::string> part_names(const Catalog& catalog, const std::string& kind);

}  // namespace kf::config
