#pragma once
// TOML text to a neutral tree. The parser's header stays in toml.cpp.

#include <optional>
#include <string>
#include <string_view>

#include "config/schema/report.h"

namespace kf::config {

/// The tree with the place of every key and value, keys in the order of the file; nothing (and a problem) when the text is not TOML.
std::optional<Table> parse_toml(std::string_view text, const std::string& file, Origin::Kind kind, Report& report);

}  // namespace kf::config
