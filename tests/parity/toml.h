#pragma once
// Sections as TOML text: the job files of training cases.

#include <string>

#include "parity/json.h"

namespace kf::parity {

/// Null values are left out. Tables inside lists become inline tables.
std::string to_toml(const Table& sections);

}  // namespace kf::parity
