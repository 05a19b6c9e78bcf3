#pragma once
// Numbers that JSON lacks, in files that other programs read.

#include <optional>
#include <string_view>

#include "config/tree/node.h"

namespace kf::config {

/// `node` as every JSON reader takes it: a real that is not finite becomes null, and the table that holds it says what it was under
/// "not_finite": {"loss": null, "not_finite": {"loss": "nan"}}. In a list it is null alone.
Node with_finite_numbers(const Node& node);

/// The real under `key` of a table that `with_finite_numbers` made: nan or an infinity for its null; nothing where there is no number.
std::optional<double> real_at(const Table& table, std::string_view key);

}  // namespace kf::config
